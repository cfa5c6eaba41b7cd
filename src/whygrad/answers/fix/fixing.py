"""Tries the changes that the rules propose: all together, and where that does not do, one by one.

A change is verified where the run with it no longer has the finding, has no new error or warning, and does not fail
in a way of its own. Nothing else is offered.
"""

from __future__ import annotations

import enum
import tempfile
from collections.abc import Callable, Iterable, Sequence

import msgspec

from whygrad.answers.fix.evidence import Difference, buffers, differences
from whygrad.answers.fix.sources import Impossible, Lines, SourceText, diff, edited, load, overlap
from whygrad.answers.fix.trial import Bench, Run, TooLong
from whygrad.answers.fix.verdict import Comparison
from whygrad.errors import BadInput
from whygrad.execute.program import Kind, Program
from whygrad.ledger.events import Seeded
from whygrad.rules.diagnose import diagnose
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Edit, Finding, Severity
from whygrad.rules.registry import all_rules
from whygrad.rules.rule import Rule
from whygrad.rules.settings import Settings

PATIENCE = 5
"""A run with a change may take so many times as long as the run without ..."""

GRACE_S = 30.0
"""... and so many seconds more."""


class Status(enum.Enum):
    """What is known of a fix: tried with success; only words; tried or prepared without success."""

    VERIFIED = "verified"
    SUGGESTED = "suggested"
    FAILED = "failed"


class Fix(msgspec.Struct, frozen=True):
    """What became of one finding. `reason` says why a change is not offered; `changes` are numbers of its subjects."""

    finding: Finding
    status: Status
    reason: str = ""
    changes: tuple[Difference, ...] = ()


class Fixes(msgspec.Struct, frozen=True):
    """What was tried on one program.

    `before` and `after` are the files that the verified fixes change together, by the paths of `before`.
    `changes` are numbers of the whole run, without and with them. `failed` has a sentence for each rule that failed.
    """

    fixes: tuple[Fix, ...]
    before: tuple[SourceText, ...] = ()
    after: tuple[SourceText, ...] = ()
    changes: tuple[Difference, ...] = ()
    seeded: bool = True
    runs: int = 1
    failed: tuple[str, ...] = ()

    def diffs(self, named: Callable[[str], str] = str) -> tuple[str, ...]:
        """A unified diff for each changed file, which is called as `named` calls its path."""
        pairs = zip(self.before, self.after, strict=True)
        return tuple(diff(before, after, named(before.path)) for before, after in pairs)

    def left(self) -> tuple[Finding, ...]:
        """Errors and warnings that no verified fix removes."""
        return tuple(
            one.finding
            for one in self.fixes
            if one.status is not Status.VERIFIED and one.finding.severity is not Severity.NOTE
        )


def try_fixes(
    program: Program,
    settings: Settings | None = None,
    *,
    chosen: Callable[[Finding], bool] = lambda _: True,
    rules: Iterable[Rule] | None = None,
    engine: str = "auto",
    timeout_s: float | None = None,
) -> Fixes:
    """Run `program`, and run it again with the changes that the rules propose for the `chosen` findings.

    `timeout_s` bounds the first run; the others get their time from it. Raises `BadInput` for what is not a
    Python file, a module or a folder, and `WhygradError` if the program cannot be run.
    """
    if program.kind not in (Kind.SCRIPT, Kind.MODULE, Kind.FOLDER) or not program.cells:
        raise BadInput(f"{program.name}: fixes are edits of Python files; save the code as one.")
    known = tuple(rules) if rules is not None else all_rules()[0]
    with tempfile.TemporaryDirectory(prefix="whygrad-fix-") as folder:
        bench = Bench(program, folder, engine, timeout_s)
        try:
            return _Search(bench, settings or Settings(), known, rules is None).search(chosen)
        except TooLong as error:
            raise BadInput(f"{program.name}: {error}; --timeout gives it longer.") from None


class _Proposal(msgspec.Struct, frozen=True):
    """A change that is to be tried."""

    finding: Finding
    edits: tuple[Edit, ...]


class _Attempt(msgspec.Struct, frozen=True):
    """A run with changes. `problem` is what is wrong with it as a whole."""

    run: Run | None
    comparison: Comparison | None
    problem: str = ""

    def cured(self, finding: Finding) -> bool:
        return not self.problem and self.comparison is not None and not self.comparison.remains(finding)


class _Search:
    def __init__(self, bench: Bench, settings: Settings, rules: Sequence[Rule], is_all: bool) -> None:
        self._bench = bench
        self._settings = settings
        self._rules = rules
        self._given = None if is_all else rules
        self._sources: dict[str, SourceText] = {}

    def search(self, chosen: Callable[[Finding], bool]) -> Fixes:
        self._before = self._bench.run({})
        self._bench.timeout_s = PATIENCE * self._before.elapsed_s + GRACE_S
        self._diagnosis = diagnose(self._before.ledger, self._settings, self._given)
        facts = Facts(self._before.ledger)
        findings = [one for one in self._diagnosis.findings if chosen(one)]
        told: dict[int, Fix] = {}
        proposals: list[_Proposal] = []
        for number, finding in enumerate(findings):
            prepared = self._prepared(facts, finding)
            if isinstance(prepared, Fix):
                told[number] = prepared
            else:
                proposals.append(prepared)
        accepted, attempt, reasons = self._tried(proposals)
        for number, finding in enumerate(findings):
            if number not in told:
                told[number] = self._judged(finding, accepted, attempt, reasons)
        after = self._changed(accepted)
        return Fixes(
            fixes=tuple(told[number] for number in range(len(findings))),
            before=tuple(self._sources[path] for path in after),
            after=tuple(after.values()),
            changes=differences(self._before, attempt.run) if attempt is not None and attempt.run is not None else (),
            seeded=next(self._before.ledger.of(Seeded), None) is not None,
            runs=self._bench.count,
            failed=self._diagnosis.failed,
        )

    def _judged(
        self, finding: Finding, accepted: list[_Proposal], attempt: _Attempt | None, reasons: dict[int, str]
    ) -> Fix:
        if all(one.finding is not finding for one in accepted):
            return Fix(finding, Status.FAILED, reasons[id(finding)])
        assert attempt is not None
        assert attempt.run is not None
        moved = buffers(finding.subjects, self._before.ledger, attempt.run.ledger)
        return Fix(finding, Status.VERIFIED, changes=moved)

    # --- what can be tried ------------------------------------------------------------------------

    def _prepared(self, facts: Facts, finding: Finding) -> _Proposal | Fix:
        """The change of the finding's rule; a `Fix` where there is none, or it cannot be made."""
        rule = next((one for one in self._rules if one.code == finding.code), None)
        try:
            edits = tuple(rule.fix(facts, finding)) if rule is not None else finding.edits
        except Exception as error:
            return Fix(finding, Status.FAILED, f"the rule's fix failed: {type(error).__name__}: {error}")
        if not edits:
            return Fix(finding, Status.SUGGESTED)
        proposal = _Proposal(finding, edits)
        try:
            self._changed([proposal])
        except (Impossible, BadInput) as error:
            return Fix(finding, Status.FAILED, str(error))
        return proposal

    def _source(self, path: str) -> SourceText:
        """The file as it is; what changed since the run, or was not part of it, is left alone."""
        if path not in self._sources:
            source, recorded = load(path), self._before.ledger.source(path)
            if recorded is None or not source.is_recorded_as(recorded):
                raise Impossible(f"{path} is not what was run")
            self._sources[path] = source
        return self._sources[path]

    def _changed(self, proposals: Iterable[_Proposal]) -> dict[str, SourceText]:
        wanted: dict[str, list[Edit]] = {}
        for proposal in proposals:
            for edit in proposal.edits:
                wanted.setdefault(edit.path, []).append(edit)
        return {path: edited(self._source(path), edits) for path, edits in wanted.items()}

    # --- trying ----------------------------------------------------------------------------------

    def _tried(self, proposals: list[_Proposal]) -> tuple[list[_Proposal], _Attempt | None, dict[int, str]]:
        """The proposals that do it together, the run with them, and why the others do not."""
        reasons: dict[int, str] = {}
        if not proposals:
            return [], None, reasons
        fitting = _without_overlaps(proposals)
        if len(fitting) == len(proposals) > 1:
            attempt = self._attempt(fitting)
            if all(attempt.cured(one.finding) for one in fitting):
                return fitting, attempt, reasons
        accepted: list[_Proposal] = []
        best: _Attempt | None = None
        for proposal in proposals:
            in_way = next((one for one in accepted if overlap(one.edits, proposal.edits)), None)
            if in_way is not None:
                reasons[id(proposal.finding)] = f"its change overlaps that for {in_way.finding.code}; fix that first"
                continue
            attempt = self._attempt([*accepted, proposal])
            if all(attempt.cured(one.finding) for one in (*accepted, proposal)):
                accepted.append(proposal)
                best = attempt
            else:
                reasons[id(proposal.finding)] = attempt.problem or "the finding is still there with the change"
        return accepted, best, reasons

    def _attempt(self, proposals: list[_Proposal]) -> _Attempt:
        changed = self._changed(proposals)
        try:
            run = self._bench.run(changed)
        except TooLong as error:
            return _Attempt(None, None, f"{error} with the change")
        after = diagnose(run.ledger, self._settings, self._given)
        lines = {path: Lines(self._sources[path], source) for path, source in changed.items()}
        comparison = Comparison(self._diagnosis.findings, after.findings, lines)
        problem = comparison.fails_anew(self._before.ending, run.ending)
        new = comparison.new()
        if not problem and new:
            problem = f"the run with the change shows {new[0].code} on {new[0].place.where}: {new[0].title}"
        return _Attempt(run, comparison, problem)


def _without_overlaps(proposals: list[_Proposal]) -> list[_Proposal]:
    fitting: list[_Proposal] = []
    for proposal in proposals:
        if not any(overlap(one.edits, proposal.edits) for one in fitting):
            fitting.append(proposal)
    return fitting
