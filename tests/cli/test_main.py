"""The command line: help, usage, and how every failure becomes one line and an exit code."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from collections.abc import Callable

import click
import pytest

from whygrad import cli
from whygrad.errors import BadInput


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Make `whygrad fail` a command that raises."""

    def install(error: BaseException) -> None:
        @click.command
        def fail() -> None:
            raise error

        module = types.ModuleType("whygrad.cli.fail")
        module.fail = fail  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "whygrad.cli.fail", module)
        monkeypatch.setattr(cli, "COMMANDS", (*cli.COMMANDS, "fail"))

    return install


def test_version_names_python_and_pytorch(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.call(["--version"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("whygrad ")
    assert "Python 3." in said
    assert "PyTorch" in said


def test_help_teaches_by_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.call(["--help"]) == 0
    said = capsys.readouterr().out
    assert "whygrad run train.py --epochs 2" in said
    assert "whygrad show run.jsonl --html run.html" in said
    for name in cli.COMMANDS:
        assert f"\n  {name}" in said


@pytest.mark.parametrize("name", ["", *cli.COMMANDS])
def test_help_fits_a_terminal_of_80_columns(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    cli.call([*filter(None, [name]), "--help"])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_help_with_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.call([name, "--help"]) == 0
    assert f"whygrad {name} " in capsys.readouterr().out.split("Options:")[0].split("\n", 1)[1]


def test_without_a_command_the_help_is_shown_as_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.call([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("Usage: whygrad")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["shwo"], "whygrad: no such command 'shwo'."),
        (["show"], "whygrad: missing argument 'LEDGER'. See `whygrad show --help`."),
        (["show", "--colour"], "whygrad: no such option"),
        (["show", "x", "--width", "ten"], "whygrad: invalid value for '--width'"),
        (["completion", "tcsh"], "whygrad: invalid value for "),
    ],
)
def test_bad_usage_is_one_line_and_exit_code_2(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.call(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(sentence)
    assert err.count("\n") == 1


def test_a_program_in_the_place_of_a_command_gets_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.call([__file__]) == 2
    assert f"Did you mean `whygrad run {__file__}`?" in capsys.readouterr().err


def test_an_error_of_ours_is_its_sentence(
    failing: Callable[[BaseException], None], capsys: pytest.CaptureFixture[str]
) -> None:
    failing(BadInput("run.jsonl: is empty."))
    assert cli.call(["fail"]) == 2
    assert capsys.readouterr() == ("", "whygrad: run.jsonl: is empty.\n")


def test_a_defect_is_one_line_that_says_how_to_see_more(
    failing: Callable[[BaseException], None], capsys: pytest.CaptureFixture[str]
) -> None:
    failing(KeyError("a\nb"))
    assert cli.call(["fail"]) == 70
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("whygrad: this is a defect in whygrad, not in your program: KeyError: ")
    assert "--debug" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("asked", ["flag", "environment"])
def test_the_traceback_of_a_defect_is_shown_when_asked_for(
    asked: str,
    failing: Callable[[BaseException], None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failing(KeyError("lost"))
    if asked == "environment":
        monkeypatch.setenv("WHYGRAD_DEBUG", "1")
    assert cli.call([*(["--debug"] if asked == "flag" else []), "fail"]) == 70
    err = capsys.readouterr().err
    assert "Traceback (most recent call last)" in err
    assert err.splitlines()[-1].startswith("whygrad: this is a defect")


def test_an_interrupt_ends_with_the_code_of_the_shell(
    failing: Callable[[BaseException], None], capsys: pytest.CaptureFixture[str]
) -> None:
    failing(KeyboardInterrupt())
    assert cli.call(["fail"]) == 130
    assert "Traceback" not in capsys.readouterr().err


def test_a_command_chooses_its_exit_code(failing: Callable[[BaseException], None]) -> None:
    failing(SystemExit(3))
    with pytest.raises(SystemExit) as ended:
        cli.call(["fail"])
    assert ended.value.code == 3


def test_python_dash_m_is_the_command() -> None:
    command = [sys.executable, "-m", "whygrad", "show", "missing.jsonl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "whygrad: missing.jsonl: there is no such file.\n")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_the_script_of_the_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.call(["completion", shell]) == 0
    assert f"_WHYGRAD_COMPLETE={shell}_complete" in capsys.readouterr().out


def test_the_shell_is_offered_commands_and_options() -> None:
    def offered(words: str, number: int) -> list[str]:
        asked = {"_WHYGRAD_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(number)}
        done = subprocess.run(
            [sys.executable, "-m", "whygrad"], env=os.environ | asked, capture_output=True, text=True, check=False
        )
        return [line.partition(",")[2] for line in done.stdout.splitlines()]

    assert set(cli.COMMANDS) <= set(offered("whygrad ", 1))
    assert "--html" in offered("whygrad show --h", 2)
