"""Does `whygrad run` name the cause? Every faulty program of a folder and its fixed twin, and what the rules say.

    python -m benchmarks.diagnosis CASES [--only 021 ...] [--jobs 2]

CASES holds a folder a case: `case.py`, `fixed.py` and `case.json` with `cause_line`. A case is *found* where a finding
blames the cause line (within one line), *elsewhere* where findings blame other lines only, *missed* where there are
none. Findings above notes on `fixed.py` are false.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

NEAR = 1
TIMEOUT_S = 300


@dataclass(frozen=True)
class Verdict:
    """What was said of one case. Findings are (code, slug, severity, line)."""

    name: str
    cause: int
    findings: tuple[tuple[str, str, str, int], ...]
    false: tuple[tuple[str, str, str, int], ...]
    verified: int
    failed: str = ""

    @property
    def outcome(self) -> str:
        if self.failed:
            return "failed"
        if any(abs(line - self.cause) <= NEAR for *_, line in self.findings):
            return "found"
        return "elsewhere" if self.findings else "missed"


def judge(case: Path) -> Verdict:
    about = json.loads((case / "case.json").read_text())
    try:
        found = _findings(case / "case.py")
        fixed = _findings(case / "fixed.py")
    except (subprocess.TimeoutExpired, OSError, ValueError) as error:
        return Verdict(case.name, about["cause_line"], (), (), 0, f"{type(error).__name__}: {error}")
    return Verdict(
        case.name,
        about["cause_line"],
        tuple(_line(one) for one in found),
        tuple(_line(one) for one in fixed if one["severity"] != "note"),
        sum(one["fix"] == "verified" for one in found),
    )


def _findings(program: Path) -> list[dict[str, object]]:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "summary.json")
        command = [sys.executable, "-m", "whygrad", "run", "-q", "--no-derive", "--json", str(target), str(program)]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S, cwd=program.parent, check=False
        )
        if not target.exists():
            raise ValueError(done.stderr[-400:])
        found = json.loads(target.read_text())["findings"]
        assert isinstance(found, list)
        return found


def _line(finding: dict[str, object]) -> tuple[str, str, str, int]:
    return str(finding["code"]), str(finding["slug"]), str(finding["severity"]), int(str(finding["line"]))


def table(verdicts: list[Verdict]) -> str:
    """The results as Markdown."""
    rows = ["| case | cause | outcome | findings (line) | false on the fix |", "| --- | ---: | --- | --- | --- |"]
    for one in verdicts:
        said = one.failed or _spelled(one.findings)
        rows.append(f"| {one.name} | {one.cause} | {one.outcome} | {said} | {_spelled(one.false)} |")
    counts = {
        outcome: sum(one.outcome == outcome for one in verdicts)
        for outcome in ("found", "elsewhere", "missed", "failed")
    }
    false = sum(bool(one.false) for one in verdicts)
    verified = sum(bool(one.verified) for one in verdicts)
    rows += [
        "",
        f"{counts['found']} of {len(verdicts)} causes found on the right line, {counts['elsewhere']} elsewhere, "
        f"{counts['missed']} missed, {counts['failed']} failed; false findings on {false} of the fixed programs; "
        f"fixes verified for {verified}.",
    ]
    return "\n".join(rows)


def _spelled(findings: tuple[tuple[str, str, str, int], ...]) -> str:
    return ", ".join(f"{code} {slug} ({line})" for code, slug, _, line in findings) or "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path)
    parser.add_argument("--only", nargs="*", default=[], help="beginnings of the cases' names")
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    chosen = [
        folder
        for folder in sorted(arguments.cases.iterdir())
        if (folder / "case.json").exists()
        and (not arguments.only or any(folder.name.startswith(one) for one in arguments.only))
    ]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        print(table(list(pool.map(judge, chosen))))


if __name__ == "__main__":
    main()
