"""Did the change do it? The findings and the ending of the run with the change, held against those without."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from whygrad.answers.fix.sources import Lines
from whygrad.answers.fix.trial import Ending
from whygrad.rules.finding import Finding, Severity


class Comparison:
    """Two runs of one program. `lines` say, for each changed file, which line was which."""

    def __init__(self, before: Iterable[Finding], after: Iterable[Finding], lines: Mapping[str, Lines]) -> None:
        self._before = tuple(before)
        self._after = tuple(after)
        self._lines = lines

    def remains(self, finding: Finding) -> bool:
        """Whether the run with the change still shows a finding of the first."""
        return any(self._same(finding, one) for one in self._after)

    def new(self) -> list[Finding]:
        """Errors and warnings that only the run with the change shows."""
        return [
            one
            for one in self._after
            if one.severity is not Severity.NOTE and not any(self._same(known, one) for known in self._before)
        ]

    def fails_anew(self, before: Ending, after: Ending) -> str:
        """How the program now fails as it did not before; empty if it does not."""
        if after.how == "returned" or (after.how, after.exit_code) == (before.how, before.exit_code) == ("exit", 0):
            return ""
        if after.how == "exception":
            where = (after.path, self._line(after.path, after.line))
            if before.how == "exception" and (before.kind, (before.path, before.line)) == (after.kind, where):
                return ""
            return f"the program then raises {after.kind}: {_first_line(after.text)}"
        if (after.how, after.exit_code) == (before.how, before.exit_code):
            return ""
        return f"the program then ends otherwise ({after.how}, exit code {after.exit_code})"

    def _same(self, before: Finding, after: Finding) -> bool:
        if (before.code, before.place.path) != (after.code, after.place.path):
            return False
        return before.place.line == self._line(after.place.path, after.place.line)

    def _line(self, path: str, line: int) -> int:
        return self._lines[path].original(line) if path in self._lines else line


def _first_line(text: str) -> str:
    return next(iter(text.splitlines()), "")[:160]
