"""Checks problems: every option is executed or evaluated, on every engine and with a second seed; the key must hold
and every other option must fail."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from whygrad.check.defect import Checked, Defect, Name
from whygrad.check.evidence import reason
from whygrad.check.runner import Runner
from whygrad.execute.jobs import Failure, Job, Result
from whygrad.practice import exercise, published
from whygrad.practice.problem import BLANK, Kind, Note, Option, Problem
from whygrad.practice.settle import Plan, Settlement, shorten, what_happened

OTHER_SEED = 20_731
"""What the second run of everything begins with, on two threads and with another order of hashes."""

PLACEHOLDER = re.compile(
    r"\b(TODO|FIXME|TBD|XXX+)\b|lorem ipsum|\byour (?:code|answer)(?: goes)? here\b|<(?:insert|fill)\b[^>]*>",
    re.IGNORECASE,
)
REVEAL = 4
"""The last of so many hints may be the answer."""


def check_problems(problems: Sequence[Problem], runner: Runner, engines: Sequence[str]) -> Checked:
    """What is wrong with the problems. Each runs on those of `engines` that it is said to be true for."""
    defects: list[Defect] = []
    for problem in problems:
        defects += _without_running(problem)
    plain = [problem for problem in problems if problem.front.kind is not Kind.CODE]
    coding = [problem for problem in problems if problem.front.kind is Kind.CODE]
    defects += _settled(plain, runner, engines)
    defects += _exercised(coding, runner, engines)
    ran = [problem for problem in problems if _engines(problem, engines)]
    paths = tuple(dict.fromkeys(problem.path for problem in problems))
    order = sorted(_once(defects), key=lambda one: (one.path, one.line))
    return Checked(len(problems), len(ran), (), tuple(order), paths)


_Id: TypeAlias = tuple[str, int]


def _id(problem: Problem) -> _Id:
    """A text may hold several problems."""
    return problem.path, problem.line


def _engines(problem: Problem, engines: Sequence[str]) -> list[str]:
    return [engine for engine in engines if engine in {one.value for one in problem.front.engines}]


def _once(defects: list[Defect]) -> list[Defect]:
    """One defect of a name a line."""
    first: dict[tuple[str, int, Name], Defect] = {}
    for one in defects:
        first.setdefault((one.path, one.line, one.name), one)
    return list(first.values())


# --- what can be seen without running -----------------------------------------------------------------


def _without_running(problem: Problem) -> Iterator[Defect]:
    for text, line in _texts(problem):
        match = PLACEHOLDER.search(text)
        if match is not None:
            at = line + text[: match.start()].count("\n")
            yield Defect(Name.PLACEHOLDER, problem.path, at, match[0], "nothing was put in its place")
    if problem.code is not None and BLANK in problem.code.text and problem.front.kind not in (Kind.SETTING, Kind.CODE):
        at = problem.code.line + problem.code.text[: problem.code.text.index(BLANK)].count("\n")
        yield Defect(Name.PLACEHOLDER, problem.path, at, BLANK, "only the code of a setting problem has a blank")
    if problem.solution is not None and _is_stub(problem.solution.text):
        yield Defect(Name.PLACEHOLDER, problem.path, problem.solution.line, "the solution", "a body that does nothing")
    yield from _given_away(problem)


def _texts(problem: Problem) -> Iterator[tuple[str, int]]:
    yield problem.question, problem.line
    for code in (problem.code if problem.front.kind is not Kind.CODE else None, problem.solution):
        if code is not None:
            yield code.text, code.line
    for option in problem.options:
        yield f"{option.text} {option.feedback}", option.line
    notes: list[Note] = [*problem.hints, *problem.follow_ups, *problem.checklist]
    for note in (*notes, *([problem.explanation] if problem.explanation else [])):
        yield note.text, note.line


def _is_stub(source: str) -> bool:
    """Whether a function of the solution has an empty body."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return False
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and len(node.body) == 1:
            only = node.body[0]
            if isinstance(only, ast.Pass) or (isinstance(only, ast.Raise) and "NotImplemented" in ast.unparse(only)):
                return True
            if isinstance(only, ast.Expr) and isinstance(only.value, ast.Constant) and only.value.value is ...:
                return True
    return False


def _given_away(problem: Problem) -> Iterator[Defect]:
    key = problem.key.text if problem.key is not None else problem.answer.text if problem.answer is not None else ""
    if not key or problem.front.kind is Kind.LINE:
        return
    hints = problem.hints[:-1] if len(problem.hints) >= REVEAL else problem.hints
    others = {option.text for option in problem.options if not option.keyed}
    wanted = published.words(key.replace("`", ""))
    shown = " ".join(published.words(f"{problem.question} {problem.code.text if problem.code else ''}"))
    if len(wanted) < 2 and (len(key) < 2 or not wanted or key in ("None", "True", "False", "Yes", "No")):
        return
    phrase = " ".join(wanted)
    if _has(shown, phrase) or key in others:
        return
    for hint in hints:
        if _has(" ".join(published.words(hint.text.replace("`", ""))), phrase):
            yield Defect(Name.HINT_GIVES_KEY_AWAY, problem.path, hint.line, shorten(hint.text), f"the answer is {key}")


def _has(text: str, phrase: str) -> bool:
    return f" {phrase} ".lower() in f" {text} ".lower()


# --- problems with options, or an answer to type ------------------------------------------------------


def _settled(problems: Sequence[Problem], runner: Runner, engines: Sequence[str]) -> Iterator[Defect]:
    per_engine: dict[str, dict[_Id, Settlement]] = {}
    for engine in engines:
        chosen = [problem for problem in problems if engine in _engines(problem, engines)]
        per_engine[engine] = _settlements([Plan(problem) for problem in chosen], runner, engine, 0)
    first = {_id(problem): (_engines(problem, engines) or [""])[0] for problem in problems}
    again: dict[_Id, Settlement] = {}
    for engine in engines:
        plans = [Plan(problem, seed=OTHER_SEED, threads=2) for problem in problems if first[_id(problem)] == engine]
        again |= _settlements(plans, runner, engine, 1)
    for problem in problems:
        ours = _engines(problem, engines)
        if not ours:
            continue
        settled = per_engine[ours[0]][_id(problem)]
        found = list(_judged(problem, settled, runner, ours[0]))
        unstable = _differs(problem, settled, again[_id(problem)])
        if unstable:
            yield Defect(Name.UNSTABLE, problem.path, _code_line(problem), "one answer", unstable)
        else:
            yield from found
        for engine in ours[1:]:
            drift = _differs(problem, settled, per_engine[engine][_id(problem)])
            if drift:
                at = problem.key.line if problem.key is not None else _code_line(problem)
                yield Defect(Name.DRIFT, problem.path, at, f"the same on {ours[0]} and {engine}", drift)


def _settlements(plans: list[Plan], runner: Runner, engine: str, hash_seed: int) -> dict[_Id, Settlement]:
    jobs = [job for plan in plans for job in plan.jobs]
    results = runner.run(jobs, engine, hash_seed) if jobs else []
    found: dict[_Id, Settlement] = {}
    at = 0
    for plan in plans:
        found[_id(plan.problem)] = plan.settle(results[at : at + len(plan.jobs)])
        at += len(plan.jobs)
    return found


def _differs(problem: Problem, one: Settlement, other: Settlement) -> str:
    """Where two settlements differ, in words."""
    for option, first, second in zip(problem.options, one.options, other.options, strict=True):
        if first.holds != second.holds:
            return f"option {option.letter}: {first.what}, then {second.what}"
    if problem.front.kind in (Kind.PREDICT, Kind.WHAT_IF) and one.observed != other.observed:
        said = published.published(one.observed)
        if not published.printed_agrees(said, other.observed) and not ("raises" in one.observed and not problem.answer):
            return f"{one.observed}, then {other.observed}"
    if one.symptom is not None and other.symptom is not None and one.symptom.holds != other.symptom.holds:
        return f"the symptom: {one.symptom.what}, then {other.symptom.what}"
    return ""


def _judged(problem: Problem, settled: Settlement, runner: Runner, engine: str) -> Iterator[Defect]:
    base, path = settled.base, problem.path
    assert base is not None
    if (unfit := _unfit(problem, base)) is not None:
        yield unfit
        return
    if settled.symptom is not None and (settled.symptom.broken or not settled.symptom.holds):
        observed = settled.symptom.broken or f"`{problem.front.symptom}` is {settled.symptom.what}"
        yield Defect(
            Name.QUESTION_PRESUPPOSES_ERROR, path, _code_line(problem), problem.front.symptom, observed,
            reason(problem, base, runner, engine),
        )  # fmt: skip
        return
    if not settled.is_changed and problem.edit is not None:
        yield Defect(
            Name.QUESTION_PRESUPPOSES_ERROR, path, problem.edit.line, "the edit changes something",
            f"before and after it: {settled.observed}",
        )  # fmt: skip
    for option, shown in zip(problem.options, settled.options, strict=True):
        if shown.broken:
            yield Defect(Name.DOES_NOT_RUN, path, option.line, f"option {option.letter}: {option.text}", shown.broken)
    yield from _keyed(problem, settled, runner, engine)
    for claim, shown in settled.claims:
        if not shown.holds:
            yield Defect(Name.EXPLANATION_CONTRADICTS_RUN, path, claim.line, claim.text, shown.what)


def _unfit(problem: Problem, base: Result) -> Defect | None:
    """The defect of code that does not run, where no answer is about that."""
    failure = base.failure
    if failure is None and not base.stopped:
        return None
    line = _code_line(problem) + max(failure.line - 1, 0) if failure is not None else _code_line(problem)
    text = what_happened(base, None)
    if failure is not None and (needs := needed(failure, problem.code.text if problem.code else "")):
        return Defect(Name.NOT_SELF_CONTAINED, problem.path, line, needs, text)
    if base.stopped or (failure is not None and failure.is_a("SyntaxError")):
        return Defect(Name.DOES_NOT_RUN, problem.path, line, "a program that runs", text)
    kind = problem.front.kind
    speaks = kind in (Kind.PREDICT, Kind.WHAT_IF) and (
        any(isinstance(published.published(option.text), published.Error) for option in problem.options)
        or (problem.answer is not None and isinstance(published.published(problem.answer.text), published.Error))
    )
    checks = " ".join([problem.front.check, problem.front.symptom, *(option.check for option in problem.options)])
    if speaks or re.search(r"\berror\b|raised|failed_backwards|broken_contracts", checks):
        return None
    if kind is Kind.DEBUG:  # what it rests on does not happen: said as such
        return None
    return Defect(Name.DOES_NOT_RUN, problem.path, line, "a program that runs to its end", text)


def needed(failure: Failure, source: str) -> str:
    """What a program needs that is not shown, if that is why it failed."""
    if failure.kind == "NameError":
        match = re.search(r"name '(\w+)'", failure.text)
        name = match[1] if match else ""
        bound = re.search(rf"\b{name}\s*(?:=|,)|\b(?:def|class|import|as|for)\s+{name}\b|del {name}\b", source)
        return "" if not name or bound or hasattr(builtins, name) else f"the name {name}"
    if failure.is_a("ModuleNotFoundError"):
        return f"the module {failure.text.split(chr(39))[1]}" if "'" in failure.text else "a module"
    if failure.kind == "FileNotFoundError":
        return "a file"
    return ""


def _keyed(problem: Problem, settled: Settlement, runner: Runner, engine: str) -> Iterator[Defect]:
    """The defects of the key itself."""
    base, path = settled.base, problem.path
    assert base is not None
    if problem.answer is not None and not problem.options:
        from whygrad.practice.settle import text_is_right

        asked = base.steps[0].replies[0] if base.steps[0].replies else None
        if not text_is_right(problem.answer.text, base, asked):
            yield Defect(
                Name.WRONG_KEY, path, problem.answer.line, problem.answer.text, settled.observed,
                reason(problem, base, runner, engine),
            )  # fmt: skip
        return
    right = [option for option, shown in zip(problem.options, settled.options, strict=True) if shown.holds]
    key = problem.key
    if key is None:
        return
    shown = settled.options[problem.options.index(key)]
    said = f"{key.letter}: {key.text}"
    if key not in right:
        evidence = reason(problem, base, runner, engine)
        if right:
            observed = f"{_option(right[0])} ({_observed(problem, settled, shown.what)})"
            yield Defect(Name.WRONG_KEY, path, key.line, said, observed, evidence)
        else:
            yield Defect(Name.NO_RIGHT_OPTION, path, key.line, said, _observed(problem, settled, shown.what), evidence)
    if len(right) > 1:
        second = next(option for option in right if option is not key)
        yield Defect(Name.TWO_RIGHT_OPTIONS, path, second.line, said, " and ".join(map(_option, right)) + " both hold")


def _observed(problem: Problem, settled: Settlement, shown: str) -> str:
    return settled.observed if problem.front.kind in (Kind.PREDICT, Kind.WHAT_IF) else shown


def _option(option: Option) -> str:
    return f"{option.letter}: {option.text}"


def _code_line(problem: Problem) -> int:
    return problem.code.line if problem.code is not None else problem.line


# --- problems that ask for code -----------------------------------------------------------------------


def _exercised(problems: Sequence[Problem], runner: Runner, engines: Sequence[str]) -> Iterator[Defect]:
    for engine in engines:
        chosen = [problem for problem in problems if engine in _engines(problem, engines)]
        is_first = {_id(problem): _engines(problem, engines)[0] == engine for problem in chosen}
        jobs: list[Job] = []
        owners: list[tuple[Problem, str, exercise.Mutant | None]] = []
        for problem in chosen:
            assert problem.solution is not None
            jobs.append(exercise.job(problem, problem.solution.text))
            owners.append((problem, "solution", None))
            if not is_first[_id(problem)]:
                continue
            jobs.append(exercise.job(problem, problem.solution.text, seed=OTHER_SEED, threads=2))
            owners.append((problem, "again", None))
            if problem.code is not None:
                jobs.append(exercise.job(problem, problem.code.text))
                owners.append((problem, "starter", None))
            for wrong in exercise.mutants(problem):
                jobs.append(exercise.job(problem, wrong.source))
                owners.append((problem, "mutant", wrong))
        results = runner.run(jobs, engine) if jobs else []
        for (problem, role, mutant), result in zip(owners, results, strict=True):
            judged = exercise.judge(problem, result)
            if role in ("solution", "again") and not judged.passes:
                yield _fails(problem, judged, result, role, engine)
            elif role == "starter" and judged.passes:
                yield Defect(
                    Name.ALREADY_SOLVED, problem.path, _code_line(problem), "code that is still to be written",
                    "it passes every check as it is",
                )  # fmt: skip
            elif mutant is not None and judged.passes:
                at = problem.checks[0].line
                yield Defect(
                    Name.WEAK_TEST, problem.path, at, "checks that only a solution passes",
                    f"the solution {mutant.how} (line {mutant.line}) passes them too",
                )  # fmt: skip


def _fails(problem: Problem, judged: exercise.Judged, result: Result, role: str, engine: str) -> Defect:
    assert problem.solution is not None
    line = judged.line or problem.solution.line
    failure = result.failure
    if failure is not None and (needs := needed(failure, problem.solution.text)):
        return Defect(Name.NOT_SELF_CONTAINED, problem.path, problem.solution.line, needs, judged.why)
    if role == "again":
        return Defect(Name.UNSTABLE, problem.path, line, "a solution that passes", f"with another seed: {judged.why}")
    if not judged.check:
        at = problem.solution.line + max((failure.line if failure else 1) - 1, 0)
        return Defect(Name.DOES_NOT_RUN, problem.path, at, "a solution", f"on {engine}: {judged.why}")
    return Defect(Name.WRONG_KEY, problem.path, line, f"the solution passes `{judged.check}`", judged.why)
