"""Where a module was built: the call of its class in the user's source.

The ledger knows a module by its path and class, not by the line of its constructor. The source does: the calls of
that class, told apart by what the result is assigned to and by their options.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from whygrad.ledger.events import Module
from whygrad.ledger.events import Source as SourceFile
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Edit, Place
from whygrad.rules.source import Source


class Unknown(msgspec.Struct, frozen=True):
    """An option that is not a literal: its text."""

    text: str


class Construction(msgspec.Struct, frozen=True, eq=False):
    """The expression that built a module."""

    source: Source
    call: ast.Call
    place: Place

    def option(self, name: str, position: int | None = None, default: Any = None) -> Any:
        """An argument by its keyword or its position: a literal, `Unknown`, or `default` where it is not given."""
        return option_of(self.source, self.call, name, position, default)


def option_of(source: Source, call: ast.Call, name: str, position: int | None = None, default: Any = None) -> Any:
    """An argument of a call: a literal, `Unknown`, or `default` where it is not given."""
    given = argument(call, name, position)
    if given is None:
        starred = any(keyword.arg is None for keyword in call.keywords)
        return Unknown("**") if starred else default
    try:
        return ast.literal_eval(given)
    except (ValueError, TypeError, SyntaxError):
        return Unknown(source.segment(given))


def argument(call: ast.Call, name: str, position: int | None = None) -> ast.expr | None:
    """The expression that was given for an argument."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if position is not None and len(call.args) > position:
        return call.args[position]
    return None


def constructed(facts: Facts, module: Module, within: str = "") -> Construction | None:
    """Where `module` was built, of several calls of its class the one that fits best; None where there is none.

    A call inside the class `within` is preferred.
    """
    found = list(_calls(facts, module.kind))
    found = [one for one in found if within and _in_class(one, within)] or found
    if len(found) > 1:
        ranked = [(_agreement(one, module), one) for one in found]
        best = max(rank for rank, _ in ranked)
        found = [one for rank, one in ranked if rank == best]
    return found[0] if found else None


def keyword_added(construction: Construction, text: str) -> Edit:
    """The edit that gives a call one more keyword argument."""
    call = construction.call
    end = (call.end_lineno or call.lineno, (call.end_col_offset or 0) - 1)
    inside = construction.source.line(end[0])[: end[1]].rstrip()
    separator = "" if inside.endswith(("(", ",")) and not inside.endswith("()") else ", "
    separator = " " if inside.endswith(",") else separator
    return Edit(construction.source.path, *end, *end, separator + text)


def called_name(call: ast.Call) -> str:
    """The last part of what is called: `Softmax` of `nn.Softmax(dim=1)`."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _calls(facts: Facts, kind: str) -> Iterator[Construction]:
    for file in facts.of(SourceFile):
        if kind not in file.text:
            continue
        source = facts.source(file.path)
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Call) and called_name(node) == kind:
                place = facts.line(file.path, node.lineno)
                yield Construction(source, node, msgspec.structs.replace(place, code=source.segment(node)))


def _in_class(construction: Construction, name: str) -> bool:
    return any(
        isinstance(node, ast.ClassDef) and node.name == name for node in construction.source.around(construction.call)
    )


def _agreement(construction: Construction, module: Module) -> tuple[bool, int]:
    """How well a call fits: whether the result goes where the module's path says; how many options agree."""
    last = next((part for part in reversed(module.path.split(".")) if not part.isdigit()), "")
    targets = set()
    for node in construction.source.around(construction.call):
        if isinstance(node, ast.Assign):
            targets = {_target(target) for target in node.targets}
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)):
            targets = {_target(node.target)}
        elif isinstance(node, ast.stmt):
            break
        if targets:
            break
    names = {name for name in re.split(r"\W+", module.path) if name and not name.isdigit()}
    near = 2 * (last in targets) + bool(names & targets)
    options = {text.strip() for text in module.config.split(",")}
    options |= {text.partition("=")[2] for text in options}
    given = [construction.source.segment(one) for one in construction.call.args]
    given += [f"{one.arg}={construction.source.segment(one.value)}" for one in construction.call.keywords]
    return near == 2 or near == 3, near + sum(text in options for text in given)


def _target(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
