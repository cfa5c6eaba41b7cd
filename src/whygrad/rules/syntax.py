"""Questions to a syntax tree that several rules ask: names of calls, assignments, loops, and whether code ran."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygrad.ledger.events import Ended, Site
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Edit
from whygrad.rules.source import Function, Loop, Source


def dotted(node: ast.AST | None) -> str:
    """The dotted name of an expression; empty for any other.

    >>> dotted(ast.parse("torch.nn.Linear", mode="eval").body)
    'torch.nn.Linear'
    """
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        owner = dotted(node.value)
        return f"{owner}.{node.attr}" if owner else ""
    return ""


def callee(node: ast.AST | None) -> str:
    """The last name of what a call calls (`Linear` of `nn.Linear(3, 4)`); empty for anything but a call."""
    if not isinstance(node, ast.Call):
        return ""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def argument(call: ast.Call, name: str, position: int | None = None) -> ast.expr | None:
    """What a call passes for a parameter, by name or by position."""
    for given in call.keywords:
        if given.arg == name:
            return given.value
    return call.args[position] if position is not None and len(call.args) > position else None


def number_of(node: ast.AST | None) -> float | None:
    """The number that a literal is."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = number_of(node.operand)
        return None if inner is None else -inner
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
        return float(node.value)
    return None


def makes_module(node: ast.AST | None) -> bool:
    """Whether an expression looks like the construction of a layer: a call of a capitalised name."""
    return callee(node)[:1].isupper()


def assignments(tree: ast.AST) -> Iterator[tuple[ast.stmt, ast.expr, ast.expr]]:
    """Every (statement, target, value) of an assignment."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield node, target, node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            yield node, node.target, node.value


def calls(tree: ast.AST, *names: str) -> Iterator[ast.Call]:
    """The calls of functions or methods whose last name is one of `names` (any, if none are given)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (not names or callee(node) in names):
            yield node


def class_of(source: Source, node: ast.AST) -> ast.ClassDef | None:
    """The innermost class that holds a node."""
    return next((outer for outer in source.around(node) if isinstance(outer, ast.ClassDef)), None)


def function_of(source: Source, node: ast.AST) -> Function | None:
    """The innermost function that holds a node."""
    return next((outer for outer in source.around(node) if isinstance(outer, Function)), None)


def loops_of(source: Source, node: ast.AST) -> list[Loop]:
    """The loops around a node inside its function, innermost first."""
    found: list[Loop] = []
    for outer in source.around(node):
        if isinstance(outer, Loop):
            found.append(outer)
        if isinstance(outer, Function):
            break
    return found


def sites_in(facts: Facts, source: Source, node: ast.AST) -> Iterator[Site]:
    """The recorded places inside a node of the tree."""
    first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
    return (site for site in facts.of(Site) if site.path == source.path and first <= site.line <= last)


def ran(facts: Facts, source: Source, node: ast.AST) -> bool:
    """Whether the ledger shows that code ran: a place in the node, or in its block from there on.

    The last line of a constructor leaves no trace of its own; there, a module of its class must have been met.
    """
    if any(True for _ in sites_in(facts, source, node)):
        return True
    line = getattr(node, "lineno", 0)
    for outer in source.around(node):
        if isinstance(outer, (ast.If, ast.For, ast.While, ast.Try, ast.FunctionDef, ast.Module)):
            if isinstance(outer, ast.Module):
                reached = any(site.line >= line for site in facts.of(Site) if site.path == source.path)
                return reached or any(ended.how == "returned" for ended in facts.of(Ended))
            if any(site.line >= line for site in sites_in(facts, source, outer)):
                return True
            if isinstance(outer, ast.FunctionDef):
                owner = class_of(source, outer)
                return outer.name == "__init__" and owner is not None and _was_made(facts, source, owner.name)
    return False


def _was_made(facts: Facts, source: Source, name: str) -> bool:
    kinds = {module.kind for module in facts.modules.values()}
    if name in kinds:
        return True
    children = [
        node.name
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ClassDef) and name in {dotted(base).rpartition(".")[2] for base in node.bases}
    ]
    return any(_was_made(facts, source, child) for child in children)


def replace(source: Source, node: ast.expr | ast.stmt, text: str) -> Edit:
    """The edit that puts `text` in a node's place."""
    line, end_line = node.lineno, node.end_lineno or node.lineno
    first, last = source.line(line).encode(), source.line(end_line).encode()
    return Edit(
        source.path,
        line,
        len(first[: node.col_offset].decode("utf-8", "replace")),
        end_line,
        len(last[: node.end_col_offset].decode("utf-8", "replace")),
        text,
    )


def insert_before(source: Source, statement: ast.stmt, text: str) -> Edit:
    """The edit that puts a line of its own before a statement, indented alike."""
    indent = source.line(statement.lineno)[: statement.col_offset]
    return Edit(source.path, statement.lineno, 0, statement.lineno, 0, f"{indent}{text}\n")


def insert_after(source: Source, statement: ast.stmt, text: str) -> Edit:
    """The edit that puts a line of its own after a statement, indented alike."""
    indent, end = source.line(statement.lineno)[: statement.col_offset], statement.end_lineno or statement.lineno
    column = len(source.line(end))
    return Edit(source.path, end, column, end, column, f"\n{indent}{text}")


def delete_line(source: Source, statement: ast.stmt) -> Edit:
    """The edit that takes a statement's lines away."""
    end = statement.end_lineno or statement.lineno
    return Edit(source.path, statement.lineno, 0, end + 1, 0, "")
