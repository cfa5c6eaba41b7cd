"""Rules that read nothing but the source: what a fix does can then be tried without PyTorch, in a tenth of the time."""

from __future__ import annotations

import re
from collections.abc import Iterator

from whygrad.rules.facts import Facts
from whygrad.rules.finding import Edit, Finding
from whygrad.rules.rule import Rule


class WordRule(Rule):
    """A word that should not be there; the fix puts another in its place."""

    code = "WG990"
    slug = "bad-word"

    def __init__(self, word: str, instead: str | None, code: str = "WG990") -> None:
        self.word = word
        self.instead = instead
        self.code = code  # type: ignore[misc]

    def check(self, facts: Facts) -> Iterator[Finding]:
        for path in facts.ledger.sources():
            for number, line in enumerate(facts.source(path).lines, 1):
                for match in re.finditer(rf"\b{re.escape(self.word)}\b", line):
                    yield self.finding(
                        facts,
                        facts.line(path, number),
                        f"{self.word} is there",
                        [],
                        why="",
                        fix=f"Write {self.instead}.",
                        evidence=[],
                        edits=self._edits(path, number, match.start(), match.end()),
                    )

    def _edits(self, path: str, line: int, start: int, end: int) -> tuple[Edit, ...]:
        return () if self.instead is None else (Edit(path, line, start, line, end, self.instead),)
