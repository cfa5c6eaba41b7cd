"""Problems that ask for code: the checks hold the solution, and fail what is not one."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator

import msgspec

from whygrad.execute.jobs import Job, Reply, Result, Step
from whygrad.practice.problem import Code, Problem
from whygrad.practice.settle import EVIDENCE, LIMITS, PATH, what_happened

MOST_MUTANTS = 16


class Mutant(msgspec.Struct, frozen=True):
    """A solution made wrong. `how` says by what."""

    source: str
    how: str
    line: int


class Judged(msgspec.Struct, frozen=True):
    """What the checks say of some code: whether all hold, and of the first that does not, which and why."""

    passes: bool
    check: str = ""
    line: int = 0
    why: str = ""


def checks_of(problem: Problem) -> list[Code]:
    """Each check by itself: the statements of the blocks; those that only prepare go with all that follow."""
    found = []
    for block in problem.checks:
        try:
            tree = ast.parse(block.text)
        except SyntaxError:
            return [block]
        prepared = ""
        for node in tree.body:
            text = ast.get_source_segment(block.text, node) or ""
            if isinstance(node, ast.Assert):
                found.append(Code(prepared + text + "\n", block.line + node.lineno - 1))
            else:
                prepared += text + "\n"
    return found


def job(problem: Problem, source: str, *, seed: int = 0, threads: int = 1) -> Job:
    """A run of `source` that asks every check."""
    checks = checks_of(problem)
    records = any("evidence" in check.text or "ledger" in check.text for check in checks)
    asks = tuple(EVIDENCE + check.text if "evidence" in check.text else check.text for check in checks)
    return Job((Step(source, PATH, asks=asks),), problem.files, seed, threads, records, LIMITS)


def judge(problem: Problem, result: Result) -> Judged:
    """What the checks say of a run."""
    if result.failure is not None or result.stopped:
        return Judged(False, "", 0, what_happened(result, None))
    checks = checks_of(problem)
    replies = result.steps[0].replies
    for index, check in enumerate(checks):
        reply = replies[index] if index < len(replies) else Reply()
        if reply.failure is not None or reply.value is None:
            why = str(reply.failure) if reply.failure is not None else "it was not reached"
            return Judged(False, check.text.strip().splitlines()[-1], check.line, why)
    return Judged(True)


def mutants(problem: Problem) -> list[Mutant]:
    """The wrong solutions: those that the problem names and, unless it wants no others, changes to the right one."""
    named = [Mutant(code.text, "the wrong solution given here", code.line) for code in problem.mutants]
    if problem.solution is None or problem.front.mutants == "given":
        return named
    made = [
        Mutant(source, how, problem.solution.line + line - 1) for source, how, line in _changes(problem.solution.text)
    ]
    return named + made[:MOST_MUTANTS]


def _changes(source: str) -> Iterator[tuple[str, str, int]]:
    """Each statement left out, each number and flag changed, each sum turned into a difference: one at a time."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return
    places = [node for node in ast.walk(tree) if isinstance(node, ast.stmt | ast.Constant | ast.BinOp)]
    quiet = _silenced(source)
    for index, node in enumerate(places):
        if node.lineno in quiet:
            continue
        changed = copy.deepcopy(tree)
        twin = [one for one in ast.walk(changed) if isinstance(one, ast.stmt | ast.Constant | ast.BinOp)][index]
        how = _mutate(twin, changed)
        if how:
            yield ast.unparse(ast.fix_missing_locations(changed)) + "\n", how, node.lineno


def _silenced(source: str) -> set[int]:
    """Lines that are marked `# any`: a change there makes no difference that matters."""
    return {number for number, line in enumerate(source.splitlines(), 1) if re.search(r"#\s*any\b", line)}


def _mutate(node: ast.AST, tree: ast.AST) -> str:
    """Change a node in place; what was done, or "" for nothing."""
    if (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)) or isinstance(node, ast.AugAssign):
        text = ast.unparse(node)
        _replace(tree, node, ast.Pass())
        return f"without `{text}`"
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            node.value = not node.value
            return f"with `{node.value}` for `{not node.value}`"
        if isinstance(node.value, int | float):
            old = node.value
            node.value = old + 1
            return f"with `{node.value}` for `{old}`"
    if isinstance(node, ast.BinOp):
        pairs: dict[type[ast.operator], ast.operator] = {
            ast.Add: ast.Sub(),
            ast.Sub: ast.Add(),
            ast.Mult: ast.Div(),
            ast.Div: ast.Mult(),
        }
        other = pairs.get(type(node.op))
        if other is not None:
            text = ast.unparse(node)
            node.op = other
            return f"with `{ast.unparse(node)}` for `{text}`"
    return ""


def _replace(tree: ast.AST, old: ast.stmt, new: ast.stmt) -> None:
    for parent in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            body = getattr(parent, name, None)
            if isinstance(body, list) and any(one is old for one in body):
                body[[one is old for one in body].index(True)] = new
