"""What a rule is: its words, its examples, and `check`.

A rule's docstring is its documentation page: the first line says the fault as its owner would, the rest what
happens, why, how to find it, how to put it right. `wrong` programs must raise exactly this rule on the line that
ends in the comment `# <- here`, `right` programs nothing at all; the tests hold it, and the page shows them.
"""

from __future__ import annotations

import abc
import inspect
from collections.abc import Iterable, Sequence
from typing import ClassVar

from whygrad.ledger.events import SiteId
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Edit, Evidence, Finding, Place, Severity

HERE = "# <- here"
"""Marks, in a wrong example, the line to blame."""


class Rule(abc.ABC):
    """One kind of fault.

    `code` is `WG` and three digits: buffers 1xx, graph 2xx, modes 3xx, shapes and losses 4xx, loop and optimizer 5xx,
    numerics 6xx, precision and devices 7xx, api 9xx. `search` are the words that people with the problem use.
    `explains` are codes of rules whose findings about the same subjects are consequences of this one's.
    """

    code: ClassVar[str]
    slug: ClassVar[str]
    severity: ClassVar[Severity] = Severity.ERROR
    intended: ClassVar[str] = ""
    search: ClassVar[tuple[str, ...]] = ()
    explains: ClassVar[tuple[str, ...]] = ()
    wrong: ClassVar[tuple[str, ...]] = ()
    right: ClassVar[tuple[str, ...]] = ()

    @abc.abstractmethod
    def check(self, facts: Facts) -> Iterable[Finding]:
        """The findings in one recorded run."""

    def fix(self, facts: Facts, finding: Finding) -> Iterable[Edit]:  # noqa: ARG002
        """The edits that put `finding` right, where the change is mechanical; by default those that it carries."""
        return finding.edits

    def finding(
        self,
        facts: Facts,
        at: SiteId | Place,
        title: str,
        happened: Sequence[str],
        *,
        why: str,
        fix: str,
        evidence: Iterable[Evidence],
        subjects: Iterable[str] = (),
        severity: Severity | None = None,
        edits: Iterable[Edit] = (),
    ) -> Finding:
        """A finding of this rule, blaming `at`."""
        return Finding(
            code=self.code,
            slug=self.slug,
            severity=severity or self.severity,
            place=at if isinstance(at, Place) else facts.place(at),
            title=title,
            happened=tuple(happened),
            why=why,
            fix=fix,
            evidence=tuple(evidence),
            intended=self.intended,
            subjects=frozenset(subjects),
            edits=tuple(edits),
        )

    @classmethod
    def title(cls) -> str:
        """The first line of the page."""
        return cls._page()[0].rstrip(".")

    @classmethod
    def text(cls) -> str:
        """The page below its first line, as Markdown."""
        return cls._page()[1]

    @classmethod
    def _page(cls) -> tuple[str, str]:
        first, _, rest = inspect.cleandoc(cls.__doc__ or "").partition("\n")
        return first, rest.strip()
