"""Ledgers on disk: what is written is read, whatever happens to the file's end, and nothing else is accepted."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import tracemalloc
import typing
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgers import Book, gradient_lab
from whygrad.errors import BadInput
from whygrad.ledger import SCHEMA, Writer, events, read, store
from whygrad.ledger.values import Value

HEADER = events.Header(whygrad="0.1.0", schema=SCHEMA, program="lab.py")

# --- every event type, filled at random ---------------------------------------------------------------

_INTEGERS = st.integers(-(2**63), 2**63 - 1)
_FLOATS = st.floats(allow_nan=False, allow_infinity=False)
_JSON = st.recursive(
    st.none() | st.booleans() | _INTEGERS | _FLOATS | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def _strategy(hint: object) -> st.SearchStrategy[object]:
    plain = {int: _INTEGERS, float: _FLOATS, str: st.text(max_size=12), bool: st.booleans(), typing.Any: _JSON}
    if hint in plain:
        return plain[hint]
    if hint is type(None):
        return st.none()
    if isinstance(hint, typing.NewType):
        return _strategy(hint.__supertype__)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return _filled(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple and arguments[-1] is Ellipsis:
        return st.lists(_strategy(arguments[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*map(_strategy, arguments))
    if origin is dict:
        return st.dictionaries(_strategy(arguments[0]), _strategy(arguments[1]), max_size=3)
    return st.one_of(*map(_strategy, arguments))


def _filled(kind: type[msgspec.Struct]) -> st.SearchStrategy[msgspec.Struct]:
    if kind is events.Operand:
        tensors = st.builds(events.Operand, tensor=_INTEGERS, keyword=st.text(max_size=5))
        constants = st.builds(events.Operand, constant=_JSON, code=st.text(max_size=5))
        return st.recursive(
            tensors | constants | st.just(events.Operand()),
            lambda inner: st.builds(events.Operand, items=st.lists(inner, max_size=3).map(tuple)),
            max_leaves=4,
        )
    hints = typing.get_type_hints(kind)
    return st.builds(kind, **{name: _strategy(hint) for name, hint in hints.items()})


EVENT_KINDS = typing.get_args(events.AnyEvent)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ledgers") / "run.jsonl"


@pytest.mark.parametrize("kind", EVENT_KINDS, ids=lambda kind: kind.__name__)
def test_every_kind_of_event_is_read_as_it_was_written(kind: type[events.Event], scratch: Path) -> None:
    @given(st.lists(_filled(kind), min_size=1, max_size=3))
    def round_trip(written: list[events.AnyEvent]) -> None:
        with Writer(scratch, HEADER, force=True) as writer:
            for event in written:
                writer.write(event)
        ledger = read(scratch)
        assert list(ledger) == written
        assert (ledger.header, ledger.torn, ledger.skipped) == (HEADER, "", {})

    round_trip()


def test_all_kinds_of_event_are_in_the_union() -> None:
    assert set(EVENT_KINDS) == set(events.Event.__subclasses__())


# --- writing ------------------------------------------------------------------------------------------


def test_a_writer_to_a_file_object_flushes_each_event(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with open(path, "wb") as file:
        writer = Writer(file, HEADER)
        writer.write(events.Noted(seq=1, text="a"))
        assert [event.seq for event in read(path)] == [1]
        writer.close()
        assert not file.closed


def test_a_ledger_can_be_written_to_memory() -> None:
    file = io.BytesIO()
    Writer(file, HEADER).write(events.Noted(seq=1, text="a"))
    assert [json.loads(line) for line in file.getvalue().splitlines()][1] == {"event": "noted", "text": "a", "seq": 1}


def test_a_closed_writer_refuses_events(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "run.jsonl", HEADER)
    writer.close()
    writer.close()
    with pytest.raises(ValueError, match="closed"):
        writer.write(events.Noted(seq=1, text="a"))


def test_text_that_is_not_utf8_is_kept_with_escapes(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Writer(path, HEADER) as writer:
        writer.write(events.Raised(seq=1, kind="OSError", text=os.fsdecode(b"caf\xe9.py"), caught=None))
    (event,) = read(path)
    assert event == events.Raised(seq=1, kind="OSError", text="caf\\udce9.py")


def test_a_ledger_is_never_overwritten_unasked(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("mine")
    with pytest.raises(BadInput, match="exists already; use --force"):
        Writer(path, HEADER)
    assert path.read_text() == "mine"
    Writer(path, HEADER, force=True).close()
    assert read(path).header == HEADER


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL")
def test_a_killed_process_loses_none_of_the_events_it_wrote(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    program = (
        "import os, signal, sys\n"
        "from whygrad.ledger import Writer, events\n"
        "writer = Writer(sys.argv[1], events.Header(whygrad='0.1.0', schema=1, program='lab.py'))\n"
        "for seq in range(1, 101): writer.write(events.Noted(seq=seq, text='x'))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert [event.seq for event in read(path)] == list(range(1, 101))


# --- reading what was cut off, or written by another version ----------------------------------------


@pytest.fixture(scope="module")
def lab_bytes() -> bytes:
    file = io.BytesIO()
    lab = gradient_lab()
    writer = Writer(file, lab.header)
    for event in lab:
        writer.write(event)
    return file.getvalue()


@given(data=st.data())
def test_a_ledger_torn_at_any_byte_gives_its_whole_events(lab_bytes: bytes, scratch: Path, data: st.DataObject) -> None:
    header_end = lab_bytes.index(b"\n")
    cut = data.draw(st.integers(header_end, len(lab_bytes)))
    scratch.write_bytes(lab_bytes[:cut])
    lines = lab_bytes[:cut].split(b"\n")
    complete = {lab_bytes.split(b"\n")[index] for index in range(len(lines))}
    whole = len(lines) - 1 if lines[-1] not in complete or not lines[-1] else len(lines)
    ledger = read(scratch)
    assert list(ledger) == list(gradient_lab())[: whole - 1]
    assert bool(ledger.torn) == (lines[-1] != b"" and whole == len(lines) - 1)


def test_a_torn_last_line_is_said(tmp_path: Path, lab_bytes: bytes) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(lab_bytes[:-5])
    assert read(path).torn == f"The last line of {path} was cut off while it was written; it was left out."


@pytest.mark.parametrize("zeros", [1, 200_000, 1_000_000])
def test_the_zeros_that_a_killed_writer_had_reserved_are_no_event(tmp_path: Path, lab_bytes: bytes, zeros: int) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(lab_bytes + bytes(zeros))
    ledger = read(path)
    assert ledger.torn == ""
    assert list(ledger) == list(gradient_lab())
    path.write_bytes(lab_bytes[:-5] + bytes(zeros))
    ledger = read(path)
    assert "cut off" in ledger.torn
    assert list(ledger) == list(gradient_lab())[:-1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork")
def test_a_forked_child_that_ends_does_not_cut_its_parents_ledger(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    program = (
        "import os, sys\n"
        "from whygrad.ledger import Writer, events\n"
        "with Writer(sys.argv[1], events.Header(whygrad='0.1.0', schema=1, program='lab.py')) as writer:\n"
        "    if child := os.fork():\n"
        "        for seq in range(1, 11): writer.write(events.Noted(seq=seq, text='parent'))\n"
        "        os.waitpid(child, 0)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(path)], check=True)
    assert [event.seq for event in read(path)] == list(range(1, 11))


def test_events_appended_after_opening_are_not_part_of_the_ledger(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Writer(path, HEADER) as writer:
        writer.write(events.Noted(seq=1, text="a"))
        ledger = read(path)
        writer.write(events.Noted(seq=2, text="b"))
        assert [event.seq for event in ledger] == [1]


@given(st.dictionaries(st.text(min_size=1).map("future_".__add__), _JSON, min_size=1, max_size=3))
def test_unknown_fields_are_ignored(scratch: Path, extra: dict[str, object]) -> None:
    header = {"whygrad": "0.1.0", "schema": SCHEMA, "program": "lab.py"} | extra
    event = {"event": "noted", "seq": 1, "text": "a"} | extra
    scratch.write_text(json.dumps(header) + "\n" + json.dumps(event) + "\n", encoding="utf-8")
    ledger = read(scratch)
    assert ledger.header == HEADER
    assert list(ledger) == [events.Noted(seq=1, text="a")]


def test_unknown_kinds_of_event_are_skipped_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    lines = [
        {"whygrad": "0.9", "schema": SCHEMA, "program": "lab.py"},
        {"event": "noted", "seq": 1, "text": "a"},
        {"event": "gradient teleported", "seq": 2},
        {"event": "gradient teleported", "seq": 3},
        {"event": "noted", "seq": 4, "text": "b"},
    ]
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    ledger = read(path)
    assert [event.seq for event in ledger] == [1, 4]
    assert ledger.skipped == {"gradient teleported": 2}


def test_an_older_schema_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.jsonl"
    Writer(path, HEADER).close()
    monkeypatch.setattr(store, "SCHEMA", SCHEMA + 1)
    assert read(path).header.schema == SCHEMA


# --- what is not a ledger ----------------------------------------------------------------------------


def _nothing(_path: Path) -> None:
    pass


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _binary(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 99)


def _newer(path: Path) -> None:
    path.write_text(f'{{"whygrad":"9.0","schema":{SCHEMA + 1},"program":"lab.py","argv":7}}\n')


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        pytest.param(_nothing, "there is no such file", id="missing"),
        pytest.param(lambda path: path.mkdir(), "is a directory, not a ledger", id="directory"),
        pytest.param(lambda path: path.write_bytes(b""), "is empty, not a ledger", id="empty"),
        pytest.param(_binary, "is not a ledger of whygrad's", id="binary"),
        pytest.param(lambda path: path.write_text("import torch\n"), "is not a ledger of whygrad's", id="program"),
        pytest.param(lambda path: path.write_text('{"a": 1}\n'), "is not a ledger of whygrad's", id="other json"),
        pytest.param(lambda path: path.write_text('{"whygrad":"0.1.0","sch'), "its header was cut off", id="truncated"),
        pytest.param(_newer, "whygrad 9.0 with schema 2, and this version reads schemas up to 1: upgrade", id="newer"),
        pytest.param(
            lambda path: path.write_text('{"whygrad":"0.1.0","schema":1}\n'), "header is damaged", id="bad header"
        ),
        pytest.param(
            _pipe,
            "is a device or a pipe, not a ledger",
            id="pipe",
            marks=pytest.mark.skipif(sys.platform == "win32", reason="needs mkfifo"),
        ),
    ],
)
def test_what_is_not_a_ledger_is_refused_in_one_sentence(tmp_path: Path, make: typing.Any, sentence: str) -> None:
    path = tmp_path / "run.jsonl"
    make(path)
    with pytest.raises(BadInput) as raised:
        read(path)
    assert str(raised.value).startswith(str(path))
    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("line", ["garbage", '{"event":"noted","seq":"one"}', '{"seq":1}', "[]"])
def test_a_damaged_line_in_the_middle_is_refused_with_its_number(tmp_path: Path, line: str) -> None:
    path = tmp_path / "run.jsonl"
    with Writer(path, HEADER) as writer:
        writer.write(events.Noted(seq=1, text="a"))
    with open(path, "a") as file:
        file.write(line + '\n{"event":"noted","seq":3,"text":"b"}\n')
    ledger = read(path)
    with pytest.raises(BadInput, match=r"run\.jsonl:3: the ledger is damaged here"):
        list(ledger)


# --- size ---------------------------------------------------------------------------------------------


def _long_run(path: Path, backwards: int) -> None:
    book = Book("w = 1\nloss.backward()\nw.grad = None\n", program="loop.py")
    weight = book.leaf("w", Value(shape=(), dtype="float32", items=(3.0,)), book.site(1, "w"))
    site = book.site(2, "loss.backward()")
    with Writer(path, book.header) as writer:
        for event in book.events:
            writer.write(event)
        seq = len(book.events)
        after = Value(shape=(), dtype="float32", items=(20.0,))
        term = (events.Contribution(value=after, operation="mul"),)
        for number in range(1, backwards + 1):
            for event in (
                events.GradWritten(
                    seq=seq + 1, site=site, tensor=weight, backward=1, before=None, contributions=term, after=after
                ),
                events.GradReset(seq=seq + 2, site=site, tensor=weight, to="none", by="= None", before=after),
                events.Noted(seq=seq + 3, text=f"backward {number}"),
                events.DataChanged(seq=seq + 4, tensor=weight, by="sub_", version_before=number, version=number + 1),
            ):
                writer.write(event)
            seq += 4


def _peak_mib(path: Path, backwards: int) -> float:
    tracemalloc.start()
    try:
        ledger = read(path)
        (weight,) = ledger.leaves()
        assert sum(1 for _ in ledger) > 4 * backwards
        assert sum(1 for _ in ledger.history(weight)) == 2 * backwards
        return tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()


def test_reading_costs_at_most_sixteen_bytes_of_memory_an_event(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    _long_run(path, 100)
    base = _peak_mib(path, 100)
    path.unlink()
    _long_run(path, 5_000)
    assert _peak_mib(path, 5_000) - base < 4 * 5_000 * 18 / 2**20 + 0.1


@pytest.mark.slow
def test_a_million_events_are_read_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    _long_run(path, 250_000)
    assert path.stat().st_size > 100 * 2**20
    assert _peak_mib(path, 250_000) < 24
