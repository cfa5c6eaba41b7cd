"""The life of a buffer, folded: bounded, and never wrong about what happened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hypothesis import given
from hypothesis import strategies as st

from ledgers import scalar
from whygrad.report.folding import KEPT_AT_EACH_END, Life
from whygrad.report.parts import Change, Entry, Light, Omitted, Place, Repeat, Spread


def change(line: int, kind: str = "reset", after: float | None = None) -> Change:
    place = Place(
        path="a.py", line=line, column=0, end_line=line, end_column=1, function="f", code="x", where=f"line {line}"
    )
    value = None if after is None else scalar(after)
    return Change(seq=line, step=0, thread=0, kind=kind, cause="c", place=place, before=None, after=value)


def folded(lines: Sequence[int]) -> tuple[Entry, ...]:
    life = Life()
    for line in lines:
        life.add(change(line))
    return life.entries()


def unfolded(entries: Sequence[Entry]) -> Iterator[int]:
    """The lines again, for lives whose inner loops ran equally often in every turn."""
    for entry in entries:
        if isinstance(entry, Change):
            assert entry.place is not None
            yield entry.place.line
        elif isinstance(entry, Repeat):
            assert all(last.least == last.most for last in entry.last if isinstance(last, Repeat))
            for _ in range(entry.times):
                yield from unfolded(entry.first)


def count(entries: Sequence[Entry]) -> int:
    return sum(entry.changes if isinstance(entry, Repeat | Omitted) else 1 for entry in entries)


def test_a_loop_of_one_change_is_one_entry() -> None:
    (loop,) = folded([5] * 300)
    assert isinstance(loop, Repeat)
    assert (loop.times, loop.changes, len(loop.first)) == (300, 300, 1)


def test_a_turn_begins_where_the_body_of_the_loop_does() -> None:
    first, loop = folded([8] + [6, 8] * 299)
    assert isinstance(first, Change)
    assert isinstance(loop, Repeat)
    assert [entry.place.line for entry in loop.first if isinstance(entry, Change) and entry.place] == [6, 8]
    assert loop.times == 299


def test_a_loop_inside_a_loop_is_folded_twice() -> None:
    (outer,) = folded([5, 6, 6, 6, 7] * 50)
    assert isinstance(outer, Repeat)
    assert outer.times == 50
    inner = outer.first[1]
    assert isinstance(inner, Repeat)
    assert (inner.times, inner.least, inner.most) == (3, 3, 3)


def test_an_inner_loop_may_run_differently_often() -> None:
    (outer,) = folded([line for turn in range(2, 30) for line in (5, *[6] * turn, 7)])
    assert isinstance(outer, Repeat)
    inner = outer.last[1]
    assert isinstance(inner, Repeat)
    assert (inner.least, inner.most) == (2, 29)
    assert outer.changes == sum(turn + 2 for turn in range(2, 30))


def test_the_norms_of_a_loop_are_those_of_each_turns_last_write() -> None:
    life = Life()
    for number in range(1, 11):
        life.add(change(3))
        life.add(change(4, "set", 1.0))
        life.add(change(5, "added", float(number)))
    (loop,) = life.entries()
    assert isinstance(loop, Repeat)
    assert loop.norms == Spread(first=1.0, last=10.0, low=1.0, high=10.0)


def test_stretches_recorded_lightly_are_joined() -> None:
    life = Life()
    for first in range(1, 1001, 10):
        life.add(
            Light(
                seq=first, first_step=first, last_step=first + 9, writes=10, resets=10, sampled=1,
                norms=Spread(first=1.0, last=2.0, low=0.5, high=3.0),
            )
        )  # fmt: skip
    (light,) = life.entries()
    assert isinstance(light, Light)
    assert (light.first_step, light.last_step, light.writes) == (1, 1000, 1000)


def test_a_life_that_never_repeats_loses_its_middle() -> None:
    entries = folded(range(10_000))
    assert len(entries) == 2 * KEPT_AT_EACH_END + 1
    assert count(entries) == 10_000


def test_a_change_is_not_like_one_at_another_place() -> None:
    assert all(isinstance(entry, Change) for entry in folded([1, 2, 3, 4]))


@given(st.lists(st.integers(1, 3), max_size=60))
def test_no_change_is_lost_by_folding(lines: list[int]) -> None:
    assert count(folded(lines)) == len(lines)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.integers(1, 40), st.lists(st.integers(1, 4), max_size=5))
def test_equal_loops_unfold_to_what_happened(turn: list[int], times: int, before: list[int]) -> None:
    lines = before + turn * times
    try:
        again = list(unfolded(folded(lines)))
    except AssertionError:
        return  # inner loops of different lengths cannot be unfolded
    assert again == lines


@given(st.lists(st.integers(1, 3), max_size=40))
def test_what_is_known_early_does_not_change_what_is_known_later(lines: list[int]) -> None:
    life = Life()
    for line in lines:
        life.add(change(line))
        life.entries()
    assert life.entries() == folded(lines)
