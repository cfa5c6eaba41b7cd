"""`whygrad show`: a kept ledger in every form, and nothing but one line for what is no ledger."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ledgers import Book, gradient_lab
from whygrad import cli
from whygrad.cli import emit
from whygrad.cli.options import Color, ReportOptions
from whygrad.ledger import Ledger, Writer


def _kept(ledger: Ledger, path: Path) -> Path:
    with Writer(path, ledger.header) as writer:
        for event in ledger:
            writer.write(event)
    return path


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    return _kept(gradient_lab(), tmp_path / "run.jsonl")


# --- forms ---------------------------------------------------------------------------------------------


def test_the_terminal_report_is_the_default(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.call(["show", str(lab)]) == 0
    out, err = capsys.readouterr()
    assert "None → 20 → 40 → None → 20" in out
    assert "\x1b[" not in out
    assert err == ""


def test_colour_and_width_are_obeyed(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.call(["show", str(lab), "--color", "always", "--width", "60"]) == 0
    assert "\x1b[" in capsys.readouterr().out
    assert cli.call(["show", str(lab), "--width", "60"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 60


def test_verbose_tells_more(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.call(["show", str(lab)])
    short = capsys.readouterr().out
    cli.call(["show", "-v", str(lab)])
    assert len(capsys.readouterr().out) > len(short)


def test_derivations_are_shown_for_a_small_graph_unless_refused(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.call(["show", str(lab), "--width", "120"])
    assert "4*(2*w - 1) = 20" in capsys.readouterr().out
    cli.call(["show", str(lab), "--no-derive"])
    assert "4*(2*w - 1)" not in capsys.readouterr().out


def test_a_derivation_that_fails_takes_no_evidence_with_it(
    lab: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("here")

    monkeypatch.setattr("whygrad.answers.derive.derivations", broken)
    assert cli.call(["show", str(lab)]) == 0
    out, err = capsys.readouterr()
    assert "None → 20 → 40 → None → 20" in out
    assert err == "whygrad: no derivations: a defect in whygrad: ZeroDivisionError: here\n"


def test_json_on_standard_output_is_all_that_is_written_there(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.call(["show", str(lab), "--json", "-"]) == 0
    out, err = capsys.readouterr()
    assert out.count("\n") == 1
    assert json.loads(out)["buffers"][0]["name"] == "w"
    assert err == ""


def test_files_are_written_beside_the_terminal_report(
    lab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, machine = tmp_path / "run.html", tmp_path / "run.json"
    assert cli.call(["show", str(lab), "--html", str(page), "--json", str(machine)]) == 0
    out, err = capsys.readouterr()
    assert "None → 20 → 40 → None → 20" in out
    assert page.read_text(encoding="utf-8").startswith("<!")
    assert json.loads(machine.read_text(encoding="utf-8"))["schema"] == 1
    assert err == f"whygrad: wrote {page}\nwhygrad: wrote {machine}\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.html", "run.json", "run.jsonl"]


def test_a_torn_ledger_is_reported_and_said(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lab.write_bytes(lab.read_bytes()[:-10])
    assert cli.call(["show", str(lab)]) == 0
    assert "cut off" in " ".join(capsys.readouterr().out.split())


def test_a_ledger_without_events_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _kept(Book().ledger, tmp_path / "run.jsonl")
    for form in ([], ["--json", "-"], ["--html", "-"]):
        assert cli.call(["show", str(path), *form]) == 0
        assert "program.py" in capsys.readouterr().out


# --- bad input -----------------------------------------------------------------------------------------


def _refused(arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.call(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("whygrad: ")
    assert sentence in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        pytest.param(None, "there is no such file", id="missing"),
        pytest.param(b"", "is empty, not a ledger", id="empty"),
        pytest.param(b"\x00\xff\xfe" * 999, "is not a ledger", id="binary"),
        pytest.param(b'{"whygrad":"0.1.0","schema":1,"prog', "its header was cut off", id="truncated header"),
        pytest.param(b'{"whygrad":"9.0","schema":99,"program":"a.py"}\n', "upgrade whygrad", id="newer schema"),
        pytest.param(
            b'{"whygrad":"0.1.0","schema":1,"program":"a.py"}\n{"oops"}\n{"event":"noted","seq":1,"text":"a"}\n',
            "run.bin:2: the ledger is damaged here",
            id="damaged",
        ),
    ],
)
@pytest.mark.parametrize("form", [[], ["--json", "-"], ["--html", "out.html"]], ids=["terminal", "json", "html"])
def test_what_is_no_ledger_is_one_line(
    content: bytes | None,
    sentence: str,
    form: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path("run.bin").write_bytes(content)
    _refused(["show", "run.bin", *form], sentence, capsys)
    assert not Path("out.html").exists()


def test_a_directory_is_no_ledger(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _refused(["show", str(tmp_path)], "is a directory, not a ledger", capsys)


@pytest.mark.parametrize("option", ["--html", "--json"])
def test_an_existing_file_is_overwritten_only_when_forced(
    option: str, lab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "kept"
    path.write_text("mine")
    _refused(["show", str(lab), option, str(path)], "exists already; use --force to overwrite it", capsys)
    assert path.read_text() == "mine"
    assert cli.call(["show", str(lab), option, str(path), "--force"]) == 0
    assert "gradient_lab.py" in path.read_text(encoding="utf-8")


def test_the_ledger_itself_is_never_the_output(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = lab.read_bytes()
    _refused(["show", str(lab), "--json", str(lab), "--force"], "is read by this command", capsys)
    assert lab.read_bytes() == before


def test_two_outputs_need_two_files(lab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "out")
    _refused(["show", str(lab), "--json", path, "--html", path], "is named for two outputs", capsys)
    _refused(["show", str(lab), "--json", "-", "--html", "-"], "can be written to standard output", capsys)


@pytest.mark.parametrize(
    ("path", "sentence"), [("no/such/place.html", "there is no directory no/such"), (".", "is a directory")]
)
def test_an_output_that_cannot_be_is_refused_before_anything_is_shown(
    path: str, sentence: str, lab: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(lab.parent)
    _refused(["show", str(lab), "--html", path], sentence, capsys)


# --- where it is printed -------------------------------------------------------------------------------


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("color", "terminal", "environment", "colored"),
    [
        (Color.AUTO, True, {}, True),
        (Color.AUTO, False, {}, False),
        (Color.AUTO, True, {"NO_COLOR": "1"}, False),
        (Color.AUTO, True, {"TERM": "dumb"}, False),
        (Color.ALWAYS, False, {"NO_COLOR": "1"}, True),
        (Color.NEVER, True, {}, False),
    ],
)
def test_colour_is_for_people(
    color: Color, terminal: bool, environment: dict[str, str], colored: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    stdout = _Terminal() if terminal else io.StringIO()
    emit.emit(gradient_lab(), ReportOptions(color=color), stdout)
    assert ("\x1b[" in stdout.getvalue()) == colored


def test_a_terminal_that_knows_only_ascii_gets_ascii() -> None:
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    emit.emit(gradient_lab(), ReportOptions(), stdout)
    assert b"None -> 20 -> 40 -> None -> 20" in stdout.buffer.getvalue()  # type: ignore[attr-defined]


def test_json_is_utf8_whatever_the_terminal() -> None:
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    book = Book("w = 1  # größer\n", program="größer.py")
    emit.emit(book.ledger, ReportOptions(json="-"), stdout)
    written = stdout.buffer.getvalue()  # type: ignore[attr-defined]
    assert json.loads(written.decode("utf-8"))["program"]["path"] == "größer.py"


@pytest.mark.skipif(os.name == "nt", reason="pipes")
def test_a_reader_that_went_away_is_no_error(lab: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "whygrad", "show", str(lab)]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")
