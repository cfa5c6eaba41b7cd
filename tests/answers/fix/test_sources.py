"""Edits of a file: made from the end, never over one another, with the file's own line ends and encoding."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whygrad.answers.fix.sources import Impossible, Lines, SourceText, diff, edited, load, overlap
from whygrad.errors import BadInput
from whygrad.rules.finding import Edit

TEXT = "a = 1\nb = 2\nc = 3\n"


def _edit(line: int, start: int, end: int, text: str, end_line: int | None = None) -> Edit:
    return Edit("p.py", line, start, end_line or line, end, text)


def _made(text: str, *edits: Edit) -> str:
    return edited(SourceText("p.py", text), edits).text


def test_edits_do_not_move_one_another() -> None:
    assert _made(TEXT, _edit(1, 4, 5, "100"), _edit(1, 0, 1, "long"), _edit(3, 4, 5, "300")) == (
        "long = 100\nb = 2\nc = 300\n"
    )


def test_an_edit_can_insert_and_delete_lines() -> None:
    assert _made(TEXT, _edit(2, 0, 0, "new = 0\n"), _edit(3, 0, 0, "", end_line=4)) == "a = 1\nnew = 0\nb = 2\n"


def test_a_last_line_without_an_end_can_be_deleted() -> None:
    assert _made("a = 1\nb = 2", _edit(2, 0, 0, "", end_line=3)) == "a = 1\n"


def test_the_same_edit_twice_is_made_once() -> None:
    assert _made(TEXT, _edit(2, 0, 0, "new = 0\n"), _edit(2, 0, 0, "new = 0\n")) == "a = 1\nnew = 0\nb = 2\nc = 3\n"


def test_overlapping_edits_are_refused() -> None:
    with pytest.raises(Impossible, match="overlap"):
        _made(TEXT, _edit(1, 0, 5, "x = 1"), _edit(1, 4, 5, "2"))


def test_what_is_not_python_then_is_refused() -> None:
    with pytest.raises(Impossible, match="does not make Python"):
        _made(TEXT, _edit(1, 4, 5, "("))


@pytest.mark.parametrize("edit", [_edit(9, 0, 0, "x"), _edit(1, 40, 41, "x"), _edit(2, -1, 0, "x")])
def test_a_place_that_is_not_there_is_refused(edit: Edit) -> None:
    with pytest.raises(Impossible, match="has no"):
        _made(TEXT, edit)


def test_line_ends_stay_as_the_file_has_them() -> None:
    assert _made("a = 1\r\nb = 2\r\n", _edit(2, 0, 0, "new = 0\n")) == "a = 1\r\nnew = 0\r\nb = 2\r\n"


def test_a_form_feed_ends_no_line() -> None:
    assert _made("a = '\x0c'\nb = 2\n", _edit(2, 4, 5, "3")) == "a = '\x0c'\nb = 3\n"


def test_encoding_and_byte_order_mark_stay(tmp_path: Path) -> None:
    for data in ("# coding: latin-1\na = 'é'\n".encode("latin-1"), b"\xef\xbb\xbfa = 1\r\n"):
        path = tmp_path / "p.py"
        path.write_bytes(data)
        assert load(str(path)).data == data


def test_a_file_that_cannot_be_read_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        load(str(tmp_path / "none.py"))


def test_touching_edits_do_not_overlap() -> None:
    assert not overlap([_edit(1, 0, 2, "x")], [_edit(1, 2, 4, "y"), _edit(1, 2, 2, "z")])
    assert overlap([_edit(1, 0, 3, "x")], [_edit(1, 2, 2, "z")])
    assert not overlap([_edit(1, 0, 3, "x")], [_edit(1, 0, 3, "x")])


def test_lines_are_found_again_after_the_change() -> None:
    after = edited(SourceText("p.py", TEXT), [_edit(2, 0, 0, "new = 0\n"), _edit(3, 4, 5, "30")])
    lines = Lines(SourceText("p.py", TEXT), after)
    assert [lines.original(number) for number in (1, 2, 3, 4)] == [1, 2, 2, 3]


def test_a_diff_is_what_patch_reads() -> None:
    after = edited(SourceText("p.py", "a = 1"), [_edit(1, 4, 5, "2")])
    assert diff(SourceText("p.py", "a = 1"), after, "p.py") == (
        "--- p.py\n+++ p.py\n@@ -1 +1 @@\n-a = 1\n\\ No newline at end of file\n+a = 2\n\\ No newline at end of file\n"
    )


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8), st.data())
def test_edits_of_single_names_are_independent(values: list[int], data: st.DataObject) -> None:
    text = "".join(f"n{index} = {value}\n" for index, value in enumerate(values))
    chosen = data.draw(st.sets(st.integers(0, len(values) - 1)))
    edits = [_edit(index + 1, 5, 6, "'é'") for index in chosen]
    expected = "".join(f"n{index} = {repr('é') if index in chosen else value}\n" for index, value in enumerate(values))
    assert _made(text, *edits) == expected
