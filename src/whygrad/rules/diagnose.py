"""Runs the rules over a ledger: findings worst first, consequences folded into their causes, failures told."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from whygrad.ledger import Ledger
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding, Severity
from whygrad.rules.registry import all_rules
from whygrad.rules.rule import Rule
from whygrad.rules.settings import Settings, ignored_in


class Diagnosis(msgspec.Struct, frozen=True):
    """What the rules say. `silenced` counts findings that the source or the settings ignore.

    `failed` has a sentence for each rule that could not run: its code and the reason.
    """

    findings: tuple[Finding, ...]
    silenced: int = 0
    failed: tuple[str, ...] = ()

    @property
    def has_errors(self) -> bool:
        """Whether a finding says that the result is wrong."""
        return any(one.severity is Severity.ERROR for one in self.findings)


def diagnose(ledger: Ledger, settings: Settings | None = None, rules: Iterable[Rule] | None = None) -> Diagnosis:
    """Run the rules that `settings` want (all of them, if none are given). A rule that raises stops no other."""
    settings = settings or Settings()
    facts = Facts(ledger)
    known, failed = (tuple(rules), ()) if rules is not None else all_rules()
    wanted = [rule for rule in known if settings.wants(rule.code, rule.slug)]
    failures = list(failed)
    found: list[Finding] = []
    for rule in wanted:
        try:
            found.extend(rule.check(facts))
        except Exception as error:
            failures.append(f"The rule {rule.code} ({rule.slug}) failed: {type(error).__name__}: {error}.")
    told = without_consequences(_distinct(found), wanted)
    spoken = [one for one in told if not _silenced(one, facts, settings)]
    order = sorted(spoken, key=lambda one: (one.severity.rank, one.place.path, one.place.line, one.code))
    return Diagnosis(tuple(order), len(told) - len(spoken), tuple(failures))


def without_consequences(findings: list[Finding], rules: Iterable[Rule]) -> list[Finding]:
    """The findings that no other explains: same subject, and its rule names theirs among what it explains."""
    explained = {rule.code: rule.explains for rule in rules}
    return [
        one
        for one in findings
        if not any(
            other is not one and one.code in explained.get(other.code, ()) and _same_matter(one, other)
            for other in findings
        )
    ]


def _same_matter(one: Finding, other: Finding) -> bool:
    if not one.subjects or not other.subjects:
        return True
    return bool(one.subjects & other.subjects)


def _distinct(findings: list[Finding]) -> list[Finding]:
    """One finding of a rule a line: the first, with the subjects of all."""
    first: dict[tuple[str, str, int], Finding] = {}
    for one in findings:
        key = (one.code, one.place.path, one.place.line)
        kept = first.get(key)
        first[key] = one if kept is None else msgspec.structs.replace(kept, subjects=kept.subjects | one.subjects)
    return list(first.values())


def _silenced(finding: Finding, facts: Facts, settings: Settings) -> bool:
    source = facts.ledger.source(finding.place.path)
    return settings.silences(finding) or (source is not None and ignored_in(source, finding))
