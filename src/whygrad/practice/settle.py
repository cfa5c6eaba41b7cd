"""Settles the answers of a problem: the programs that have to run for it, and what their runs say of each option."""

from __future__ import annotations

import ast
import re

import msgspec

from whygrad.errors import BadInput
from whygrad.execute.jobs import Done, Job, Limits, Reply, Result, Step
from whygrad.practice import published
from whygrad.practice.claims import Claim, Shown, claims_of
from whygrad.practice.problem import BLANK, Edit, Kind, Option, Problem

PATH = "program.py"
EVIDENCE = "from whygrad.practice.evidence import Evidence; evidence = Evidence(ledger)\n"
LIMITS = Limits(time_s=20.0)

IMPURE = re.compile(
    r"backward|_\(|\.step|zero_grad|\.train\(|\.eval\(|set_|seed|(?<![=!<>])=(?!=)|\bfor\b|\bwith\b|del "
)
"""A check that matches may change what the next one sees, so it gets a run of its own."""


class Settlement(msgspec.Struct, frozen=True):
    """What the runs say of a problem. `options` are in the problem's order; `base` is the run of its code as it is."""

    base: Result | None
    options: tuple[Shown, ...] = ()
    observed: str = ""
    symptom: Shown | None = None
    is_changed: bool = True
    claims: tuple[tuple[Claim, Shown], ...] = ()


class _Trial(msgspec.Struct):
    """Where an option's verdict is found: the job, and which of its replies; none is of the run itself."""

    job: int
    reply: int | None = None


class Plan:
    """The jobs of a problem. `settle` takes their results, in their order."""

    def __init__(self, problem: Problem, *, seed: int = 0, threads: int = 1) -> None:
        self.problem = problem
        self.jobs: list[Job] = []
        self.claims = claims_of(problem)
        self._seed = seed
        self._threads = threads
        self._code = problem.code.text if problem.code is not None else "import torch\n"
        self._base_asks: list[str] = []
        self._trials: list[list[_Trial]] = []
        self._plan()

    # --- what has to run --------------------------------------------------------------------------

    def _plan(self) -> None:
        problem, front = self.problem, self.problem.front
        code = self._changed(problem.edit) if problem.edit is not None else self._code
        if problem.edit is not None:
            self._run(self._code, [front.ask] if front.ask else [])
        base = len(self.jobs)
        self._base = base
        asks = self._base_asks
        if front.kind in (Kind.PREDICT, Kind.WHAT_IF) and self._asked:
            asks.append(self._asked)
        if front.symptom:
            asks.append(front.symptom)
        own: list[tuple[int, str]] = []
        for index, option in enumerate(problem.options):
            self._trials.append([])
            check = self.check_of(option)
            if front.kind is Kind.SETTING:
                continue
            if check and not IMPURE.search(check):
                self._trials[index].append(_Trial(base, len(asks)))
                asks.append(check)
            elif check:
                own.append((index, check))
            elif not option.fix:
                self._trials[index].append(_Trial(base))
        first_claim = len(asks)
        asks += [claim.ask for claim in self.claims]
        self._first_claim = first_claim
        if front.kind is Kind.SETTING:
            code = self._filled(problem.key) if problem.key is not None else code
        self._run(code, asks)
        for index, check in own:
            self._trials[index].append(_Trial(len(self.jobs), 0))
            self._run(code, [check])
        for index, option in enumerate(problem.options):
            if front.kind is Kind.SETTING:
                self._trials[index].append(_Trial(len(self.jobs), 0))
                self._run(self._filled(option), [self.check_of(option)])
            elif option.fix is not None:
                self._trials[index].append(_Trial(len(self.jobs), 0))
                self._run(self._changed(option.fix), [front.symptom])

    def _run(self, code: str, asks: list[str]) -> None:
        records = any(re.search(r"\b(evidence|ledger)\b", ask) for ask in asks)
        wanted = tuple(EVIDENCE + ask if re.search(r"\bevidence\b", ask) else ask for ask in asks)
        step = Step(code, PATH, asks=wanted)
        self.jobs.append(
            Job((step,), self.problem.files, self._seed, self._threads, records, LIMITS),
        )

    @property
    def _asked(self) -> str:
        """The expression whose value is to be predicted: as the problem says, or what its last line prints."""
        if self.problem.front.ask:
            return self.problem.front.ask
        return printed_expression(self._code)

    def check_of(self, option: Option) -> str:
        """The expression that is true if the option is right; "" where its text is compared with the run."""
        if option.check:
            return option.check
        check = self.problem.front.check
        value = option.value
        if self.problem.front.kind is Kind.LINE:
            number = re.search(r"\d+", option.text)
            if number is None:
                raise BadInput(f"{self.problem.path}:{option.line}: option {option.letter} names no line.")
            value = number[0]
        return check.replace("{option}", value)

    def _filled(self, option: Option) -> str:
        """The code with what an option puts into the blank; a blank line takes several lines."""
        value = option.code or option.value
        lines = []
        for line in self._code.splitlines():
            if line.strip() == BLANK:
                indent = line[: len(line) - len(line.lstrip())]
                lines += [indent + one for one in value.splitlines()]
            else:
                lines.append(line.replace(BLANK, value))
        return "\n".join(lines) + "\n"

    def _changed(self, edit: Edit) -> str:
        return changed(self._code, edit, self.problem.path)

    # --- what the runs say ------------------------------------------------------------------------

    def settle(self, results: list[Result]) -> Settlement:
        """What the results say of the problem."""
        front = self.problem.front
        base = results[self._base]
        done = base.steps[0]
        symptom = None
        at = 0
        observed = what_happened(base, None)
        asked: Reply | None = None
        if front.kind in (Kind.PREDICT, Kind.WHAT_IF) and self._asked:
            asked = _reply(done, 0)
            observed = what_happened(base, asked)
            at = 1
        if front.symptom:
            reply = _reply(done, at)
            symptom = Shown(_holds(reply), _shown(reply, base), "" if "error" in front.symptom else _unreached(base))
        options = tuple(
            self._verdict(option, trials, results, asked)
            for option, trials in zip(self.problem.options, self._trials, strict=True)
        )
        claims = tuple(
            (claim, claim.judge(_reply(done, self._first_claim + number), base))
            for number, claim in enumerate(self.claims)
        )
        changes = True
        if self.problem.edit is not None:
            before = results[0]
            was = _reply(before.steps[0], 0) if front.ask else None
            changes = (before.printed, before.failure, was) != (
                base.printed,
                base.failure,
                asked if front.ask else None,
            )
        return Settlement(base, options, observed, symptom, changes, claims)

    def _verdict(self, option: Option, trials: list[_Trial], results: list[Result], asked: Reply | None) -> Shown:
        shown = [self._one(option, trial, results, asked) for trial in trials]
        broken = next((one.broken for one in shown if one.broken), "")
        failed = [one for one in shown if not one.holds]
        return Shown(not failed and bool(shown), (failed or shown or [Shown(False, "")])[0].what, broken)

    def _one(self, option: Option, trial: _Trial, results: list[Result], asked: Reply | None) -> Shown:
        result = results[trial.job]
        if trial.reply is None:
            holds = option_agrees(option, result, asked)
            return Shown(holds, what_happened(result, asked))
        reply = _reply(result.steps[0], trial.reply)
        if option.fix is not None and trial.job != self._base and result is results[trial.job]:
            is_fix = self.jobs[trial.job].steps[0].source != self._code
            if is_fix:
                gone = reply.value is not None and reply.value.kind == "bool" and reply.value.value is False
                state = "is gone" if gone else "is still there"
                return Shown(gone, f"with the fix, the symptom {state} ({_shown(reply, result)})")
        broken = ""
        if reply.failure is not None and result.failure is None and not result.stopped:
            broken = f"its check raises {reply.failure}"
        elif reply.value is not None and reply.value.kind != "bool":
            broken = f"its check gives {reply.value.text}, which is not True or False"
        return Shown(_holds(reply), _shown(reply, result), broken)


def changed(code: str, edit: Edit, path: str) -> str:
    """The code with an edit made. Raises BadInput where the lines that it replaces are not there."""
    lines = code.splitlines()
    plain = [line.strip() for line in lines]
    count = len(edit.old)
    for start in range(len(lines) - count + 1):
        if tuple(plain[start : start + count]) == edit.old:
            indent = lines[start][: len(lines[start]) - len(lines[start].lstrip())]
            new = [indent + line if not line.startswith((" ", "\t")) else line for line in edit.new]
            return "\n".join([*lines[:start], *new, *lines[start + count :]]) + "\n"
    raise BadInput(f"{path}:{edit.line}: the code has no line {edit.old[0]!r} to edit.")


def option_agrees(option: Option, result: Result, asked: Reply | None) -> bool:
    """Whether what an option says is what a run shows."""
    return text_is_right(option.value, result, asked) or (
        option.value != option.text
        and not isinstance(published.published(option.value), published.Error)
        and isinstance(published.published(option.text), published.Error)
        and text_is_right(option.text, result, asked)
    )


def text_is_right(text: str, result: Result, asked: Reply | None) -> bool:
    """Whether a published text is what a run shows: its error, else the value asked for, else what it prints."""
    said = published.published(text)
    if result.stopped:
        return False
    if result.failure is not None:
        return published.agrees(said, result.failure)
    if asked is not None:
        if asked.failure is not None:
            return published.agrees(said, asked.failure)
        if asked.value is not None and published.agrees(said, asked.value):
            return True
        return isinstance(said, published.Text) and published.text_agrees(text, asked.value.text if asked.value else "")
    return published.printed_agrees(said, result.printed.strip())


def printed_expression(code: str) -> str:
    """What the last line prints, if that is one expression that can be evaluated again without harm."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError):
        return ""
    last = tree.body[-1] if tree.body else None
    if (
        not isinstance(last, ast.Expr)
        or not isinstance(last.value, ast.Call)
        or not isinstance(last.value.func, ast.Name)
        or last.value.func.id != "print"
        or len(last.value.args) != 1
        or last.value.keywords
    ):
        return ""
    prints = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    argument = last.value.args[0]
    return ast.unparse(argument) if len(prints) == 1 and _is_pure(argument) else ""


PURE_METHODS = frozenset({"item", "tolist", "size", "dim", "numel", "sum", "norm"})


def _is_pure(node: ast.expr) -> bool:
    for one in ast.walk(node):
        if isinstance(one, ast.Call) and not (
            isinstance(one.func, ast.Attribute) and one.func.attr in PURE_METHODS and not one.keywords
        ):
            return False
        if isinstance(one, (ast.Await, ast.Yield, ast.NamedExpr, ast.Starred, ast.JoinedStr)):
            return False
    return True


def what_happened(result: Result, asked: Reply | None) -> str:
    """A run in a few words."""
    if result.stopped:
        return result.why
    if result.failure is not None:
        return f"line {result.failure.line} raises {result.failure}" if result.failure.line else str(result.failure)
    if asked is not None:
        return _shown(asked, result)
    return shorten(result.printed.strip()) or "it prints nothing"


def shorten(text: str, limit: int = 200) -> str:
    return text if len(text) <= limit else text[: limit - 4] + " ..."


def _reply(done: Done, index: int) -> Reply:
    return done.replies[index] if index < len(done.replies) else Reply()


def _holds(reply: Reply) -> bool:
    return reply.holds


def _shown(reply: Reply, result: Result) -> str:
    if reply.failure is not None:
        return str(reply.failure)
    if reply.value is not None:
        return shorten(" ".join(reply.value.text.split()))
    return what_happened(result, None)


def _unreached(result: Result) -> str:
    if result.failure is None and not result.stopped:
        return ""
    return what_happened(result, None)
