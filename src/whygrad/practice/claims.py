"""What an explanation states of the run: comparisons in code spans, and sentences such as "w.grad is 40"."""

from __future__ import annotations

import ast
import re

import msgspec

from whygrad.execute.jobs import Reply, Result
from whygrad.practice import published
from whygrad.practice.problem import Kind, Problem

SPAN = re.compile(r"`([^`\n]+)`")
SENTENCE = re.compile(
    r"(?<![\w.])(?P<name>[A-Za-z_][\w.]*(?:\[\d+\])?\.grad)(?:\.item\(\))?\s+"
    r"(?:is|will be|becomes|stays|remains|holds|=|==)\s+(?:then |now |still )?"
    r"(?:[-\d.+*/ ()]+=\s*)?(?P<value>None\b|\[[-\d., ]+\]|-?\d+(?:\.\d+)?)(?!\s*[-+*/=]|\.?\d)"
)


class Shown(msgspec.Struct, frozen=True):
    """Whether something holds, and what the run shows of it. `broken` says why that cannot be told."""

    holds: bool
    what: str
    broken: str = ""


class Claim(msgspec.Struct, frozen=True):
    """A statement about the run's end. `ask` evaluates to its truth, or to the value that `said` is compared with."""

    text: str
    line: int
    ask: str
    said: str = ""
    is_pair: bool = False

    def judge(self, reply: Reply, result: Result) -> Shown:
        if reply.failure is not None or reply.value is None:
            return Shown(False, str(reply.failure) if reply.failure else result.why)
        value = reply.value
        if self.is_pair:
            left, right = value.items
            return Shown(published.same(left, right), left.text)
        if self.said:
            return Shown(published.agrees(published.published(self.said), value), value.text)
        return Shown(reply.holds, value.text)


def claims_of(problem: Problem) -> list[Claim]:
    """The claims of a problem's explanation that a run can settle."""
    note = problem.explanation
    if note is None or problem.front.kind is Kind.CODE:
        return []
    found = []
    for offset, line in enumerate(note.text.splitlines()):
        for match in SPAN.finditer(line):
            claim = _comparison(match[1], note.line + offset)
            if claim is not None:
                found.append(claim)
    found += sentences(note.text, note.line)
    return found


def sentences(text: str, line: int) -> list[Claim]:
    """The claims that are made in prose."""
    plain = text.replace("`", "")
    return [
        Claim(" ".join(match[0].split()), line + plain[: match.start()].count("\n"), match["name"], match["value"])
        for match in SENTENCE.finditer(plain)
    ]


def _comparison(code: str, line: int) -> Claim | None:
    try:
        tree = ast.parse(code.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None
    if not isinstance(tree, ast.Compare):
        return None
    if len(tree.ops) == 1 and isinstance(tree.ops[0], ast.Eq):
        pair = f"({ast.unparse(tree.left)}, {ast.unparse(tree.comparators[0])})"
        return Claim(code, line, pair, is_pair=True)
    return Claim(code, line, code.strip())
