"""Does `whygrad run` name the cause? Faulty programs, correct ones, and what the rules say of them.

    python -m benchmarks.diagnosis                                   # the corpus beside this file
    python -m benchmarks.diagnosis CASES [--only 021 ...] [--jobs 2] [--fixes]

The corpus has `wrong/*.py`, whose first line names the rule and whose line to blame ends in `# <- here`, and
`right/*.py`, correct programs of many styles of training. CASES is another folder of that kind, or one that holds a
folder a case: `case.py`, `fixed.py` and `case.json` with `cause_line`.

A fault is *found* where a finding blames the cause line (within one line), *elsewhere* where findings blame other lines
only, *missed* where there are none. Findings above notes on `fixed.py` and on right programs are false. `--fixes` also
tries the changes that the rules propose (`whygrad fix`), which takes some runs more.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

NEAR = 1
TIMEOUT_S = 300
CORPUS = Path(__file__).parent / "corpus"
HERE = "# <- here"
RULE = "# rule: "


@dataclass(frozen=True)
class Case:
    """A program with what is known of it: the line to blame and the rule (if said), and correct programs beside it."""

    name: str
    program: Path | None
    cause: int = 0
    rule: str = ""
    right: Path | None = None


@dataclass(frozen=True)
class Told:
    """A finding. `fix` is `verified` where a change did it."""

    code: str
    slug: str
    severity: str
    line: int
    fix: str

    @property
    def is_alarm(self) -> bool:
        return self.severity != "note"

    def __str__(self) -> str:
        return f"{self.code} {self.slug} ({self.line})"


@dataclass(frozen=True)
class Verdict:
    """What was said of one case: of its faulty program, and falsely of its correct one."""

    case: Case
    findings: tuple[Told, ...] = ()
    false: tuple[Told, ...] = ()
    failed: str = ""

    @property
    def outcome(self) -> str:
        if self.failed:
            return "failed"
        if any(abs(told.line - self.case.cause) <= NEAR for told in self.findings):
            return "found"
        return "elsewhere" if self.findings else "missed"

    @property
    def verified(self) -> bool:
        return any(told.fix == "verified" for told in self.findings)


# --- the programs ---------------------------------------------------------------------------------------


def cases(folder: Path) -> Iterator[Case]:
    """The cases of a folder of either kind, by name."""
    for about in sorted(folder.glob("*/case.json")):
        cause = json.loads(about.read_text("utf-8"))["cause_line"]
        yield Case(about.parent.name, about.with_name("case.py"), cause, right=about.with_name("fixed.py"))
    for program in sorted(folder.glob("wrong/*.py")):
        lines = program.read_text("utf-8").splitlines()
        (cause,) = [number for number, line in enumerate(lines, 1) if line.endswith(HERE)]
        yield Case(program.stem, program, cause, lines[0].removeprefix(RULE))
    for program in sorted(folder.glob("right/*.py")):
        yield Case(program.stem, None, right=program)


# --- what is said of them -------------------------------------------------------------------------------


def judge(case: Case, with_fixes: bool) -> Verdict:
    try:
        found = _told(case.program, with_fixes) if case.program else ()
        right = _told(case.right, with_fixes=False) if case.right else ()
    except (subprocess.TimeoutExpired, OSError, ValueError) as error:
        return Verdict(case, failed=f"{type(error).__name__}: {error}")
    return Verdict(case, found, tuple(told for told in right if told.is_alarm))


def _told(program: Path, with_fixes: bool) -> tuple[Told, ...]:
    summary = _fixed(program) if with_fixes else _run(program)
    return tuple(
        Told(one["code"], one["slug"], one["severity"], one["line"], one["fix"] or "") for one in summary["findings"]
    )


def _run(program: Path) -> dict[str, list[dict[str, str | int]]]:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "summary.json")
        done = _whygrad(program, "run", "-q", "--no-derive", "--json", str(target), str(program))
        if not target.exists():
            raise ValueError(done.stderr[-400:])
        return json.loads(target.read_text("utf-8"))


def _fixed(program: Path) -> dict[str, list[dict[str, str | int]]]:
    done = _whygrad(program, "fix", "--json", str(program))
    if done.returncode not in (0, 1):
        raise ValueError(done.stderr[-400:])
    return json.loads(done.stdout)


def _whygrad(program: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "whygrad", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, cwd=program.parent, check=False)


# --- the table ------------------------------------------------------------------------------------------


def table(verdicts: Iterable[Verdict]) -> str:
    """The results as Markdown: a row a fault, a row a correct program with a false finding, and the sums."""
    told = list(verdicts)
    faults = [one for one in told if one.case.program]
    right = [one for one in told if one.case.right]
    rows: list[str] = []
    if faults:
        rows += ["| fault | cause | outcome | findings (line) | fix |", "| --- | ---: | --- | --- | --- |"]
        for one in faults:
            said = one.failed or ", ".join(map(str, one.findings)) or "-"
            fix = "verified" if one.verified else "-"
            rows.append(f"| {one.case.name} | {one.case.cause} | {one.outcome} | {said} | {fix} |")
        rows.append("")
    loud = [one for one in right if one.false or (one.failed and not one.case.program)]
    if loud:
        rows += ["| correct program | false findings (line) |", "| --- | --- |"]
        rows += [f"| {one.case.name} | {one.failed or ', '.join(map(str, one.false))} |" for one in loud]
        rows.append("")
    return "\n".join([*rows, _sums(faults, right)])


def _sums(faults: list[Verdict], right: list[Verdict]) -> str:
    counts = Counter(one.outcome for one in faults)
    false = sum(bool(one.false) for one in right)
    verified = sum(one.verified for one in faults)
    named = [one for one in faults if one.case.rule]
    by_rule = sum(any(told.slug == one.case.rule for told in one.findings) for one in named)
    text = (
        f"{counts['found']} of {len(faults)} causes found on the right line, {counts['elsewhere']} elsewhere, "
        f"{counts['missed']} missed, {counts['failed']} failed; false findings on {false} of {len(right)} correct "
        f"programs; a verified fix for {verified} of {len(faults)}."
    )
    return f"{text} The expected rule speaks in {by_rule} of {len(named)}." if named else text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path, nargs="?", default=CORPUS)
    parser.add_argument("--only", nargs="*", default=[], help="beginnings of the cases' names")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--fixes", action="store_true", help="try the changes that the rules propose")
    arguments = parser.parse_args()
    chosen = [
        case
        for case in cases(arguments.cases)
        if not arguments.only or any(case.name.startswith(one) for one in arguments.only)
    ]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        print(table(pool.map(partial(judge, with_fixes=arguments.fixes), chosen)))


if __name__ == "__main__":
    main()
