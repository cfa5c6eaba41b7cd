"""The source listing: no character is lost, expressions nest, long files are folded."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from whygrad.report.page import listing
from whygrad.report.page.listing import Marked, Piece, Stretch, Text, set_files, set_line, split_lines, stretches
from whygrad.report.page.tints import tints
from whygrad.report.parts import Place, SourceText


def place(line: int, column: int, end_line: int, end_column: int, path: str = "lab.py") -> Place:
    return Place(
        path=path, line=line, column=column, end_line=end_line, end_column=end_column, function="", code="", where=""
    )  # fmt: skip


def text_of(pieces: Iterable[Piece]) -> str:
    return "".join(piece.text if isinstance(piece, Text) else text_of(piece.inner) for piece in pieces)


def marks(pieces: Iterable[Piece]) -> list[Marked]:
    found = []
    for piece in pieces:
        if isinstance(piece, Marked):
            found += [piece, *marks(piece.inner)]
    return found


places = st.builds(place, st.just(1), st.integers(-2, 60), st.integers(1, 2), st.integers(-2, 60))
lines = st.text(st.characters(exclude_characters="\r\n"), max_size=60)


@given(lines, st.lists(places, max_size=8))
def test_whatever_is_marked_no_character_is_lost(text: str, marked: list[Place]) -> None:
    line = set_line("f1", 1, text, marked, tints(text).get(1, ()))
    assert text_of(line.pieces) == text


@given(lines, st.lists(places, max_size=8, unique=True))
def test_an_expression_begins_once(text: str, marked: list[Place]) -> None:
    first = [mark.anchor for mark in marks(set_line("f1", 1, text, marked).pieces) if mark.first]
    assert len(first) == len(set(first))


@given(st.integers(0, 400), st.sets(st.integers(1, 400), max_size=6))
def test_stretches_hold_every_line_once(count: int, active: set[int]) -> None:
    numbers = [number for first, last, _ in stretches(count, active) for number in range(first, last + 1)]
    assert numbers == list(range(1, count + 1))
    folded = {n for first, last, away in stretches(count, active) if away for n in range(first, last + 1)}
    assert not folded & active


def test_an_expression_holds_its_inner_ones() -> None:
    text = "(w * 2.0 - 1.0).square()"
    outer, inner = place(1, 0, 1, 24), place(1, 1, 1, 8)
    (whole,) = set_line("f1", 1, text, [inner, outer]).pieces
    assert isinstance(whole, Marked)
    (within,) = marks(whole.inner)
    assert (text_of([whole]), text_of([within])) == (text, "w * 2.0")
    assert (whole.anchor, within.anchor) == ("f1L1c0-1c24", "f1L1c1-1c8")


def test_an_expression_that_sticks_out_of_another_goes_on_after_it() -> None:
    line = set_line("f1", 1, "abcdef", [place(1, 0, 1, 4), place(1, 2, 1, 6)])
    assert [(text_of([mark]), mark.anchor, mark.first) for mark in marks(line.pieces)] == [
        ("abcd", "f1L1c0-1c4", True),
        ("cd", "f1L1c2-1c6", True),
        ("ef", "f1L1c2-1c6", False),
    ]


def test_an_expression_over_several_lines_is_marked_on_each_without_its_indent() -> None:
    over_two = place(1, 4, 2, 3)
    second = set_line("f1", 2, "  2)", [over_two])
    (mark,) = marks(second.pieces)
    assert (text_of([mark]), mark.first) == ("2", False)


def test_very_deep_nesting_is_cut() -> None:
    text = "(" * 300 + ")" * 300
    line = set_line("f1", 1, text, [place(1, at, 1, 600 - at) for at in range(300)])
    assert text_of(line.pieces) == text
    assert len(marks(line.pieces)) == listing.DEEPEST


def test_a_long_line_is_cut_and_says_how_much() -> None:
    line = set_line("f1", 1, "x" * 10_000)
    assert (len(text_of(line.pieces)), line.left_out) == (listing.WIDTH_LIMIT, 10_000 - listing.WIDTH_LIMIT)


def test_lines_are_those_of_python() -> None:
    assert split_lines("a\r\nb\rc\x0cd\u2028e\n") == ["a", "b", "c\x0cd\u2028e"]
    assert split_lines("") == []


def test_keywords_and_comments_are_told_apart() -> None:
    line = set_line("f1", 1, "if x:  # why", tinted=tints("if x:  # why\n    pass\n")[1])
    assert [(piece.text, piece.tint) for piece in line.pieces if isinstance(piece, Text)] == [
        ("if", "keyword"), (" x:  ", ""), ("# why", "comment"),
    ]  # fmt: skip


def test_what_is_not_python_stays_plain() -> None:
    assert tints("%matplotlib inline\nfor x in (\n") is not None


def test_a_file_that_did_nothing_is_folded() -> None:
    (idle,) = set_files([SourceText(path="helpers.py", text="x = 1\n")], [], main="lab.py")
    assert [stretch.folded for stretch in idle.stretches] == [True]


def test_a_file_in_the_programs_folder_is_named_from_there() -> None:
    sources = [
        SourceText(path=path, text="x = 1\n") for path in ("/home/me/lib/util.py", "/opt/x.py", "/home/me/lab.py")
    ]
    titles = [listed.title for listed in set_files(sources, [], main="/home/me/lab.py")]
    assert titles == ["lab.py", "lib/util.py", "/opt/x.py"]


def test_lines_without_room_are_named() -> None:
    text = "x = 1\n" * 20_000
    active = [place(line, 0, line, 5) for line in range(1, 20_001)]
    (long,) = set_files([SourceText(path="lab.py", text=text)], active, main="lab.py")
    shown, missing = long.stretches
    assert isinstance(missing, Stretch)
    assert (missing.lines, missing.first, missing.last) == ((), shown.last + 1, 20_000)
