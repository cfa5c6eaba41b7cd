"""Follows values that left PyTorch (`.item()`, `.numpy()`, `.tolist()`) and came back through Python names.

The ledger records neither Python numbers nor arrays; the program's text, which is part of it, says which
expressions they came from.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import msgspec

from whygrad.ledger import Ledger
from whygrad.ledger.events import Named, Operand, Operation, Site, SiteId, TensorId

TAKES = re.compile(r"\.(item|tolist|numpy)\(|\b(float|int|bool)\(|\b(?:np|numpy)\.(array|asarray)\(")
"""Text that takes a Python or NumPy value out of a tensor."""


class Link(msgspec.Struct, frozen=True):
    """A value that an operation was given: computed from `tensor`, and taken out of PyTorch by `taken`.

    `tensor` is below zero where it stands for a value whose taking is an operation of its own; `taken` is then
    empty, and else `text` is the code that took the value out, at `line` of the operation's file.
    """

    tensor: TensorId
    taken: str = ""
    text: str = ""
    line: int = 0


class NumberLinks:
    """Remembers what each expression gave last, and finds it in the operands of later ones."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._bindings: dict[str, list[_Binding]] = {}
        self._origins: dict[tuple[SiteId, str], tuple[_Origin, ...]] = {}
        self._sites: dict[str, list[Site]] = {}
        self._last: dict[SiteId, TensorId] = {}
        self._bound: dict[str, TensorId] = {}
        for site in ledger.of(Site):
            self._sites.setdefault(site.path, []).append(site)

    def note(self, operation: Operation) -> None:
        """Remember what an operation gave: its result, or the stand-in for the value that it took out."""
        if operation.site is not None:
            self._last[operation.site] = operation.outputs[0] if operation.outputs else stand_in(operation)

    def bind(self, named: Named) -> None:
        """Remember which tensor a name means."""
        self._bound[named.name] = named.tensor

    def into(self, operation: Operation) -> Iterator[Link]:
        """The values that went into `operation` and are not among its recorded tensors."""
        if operation.site is None:
            return
        for code in _texts(operation.inputs):
            key = (operation.site, code)
            if key not in self._origins:
                self._origins[key] = tuple(self._origin(operation.site, code))
            for origin in self._origins[key]:
                inner = _outermost([site for site in origin.sites if site.id in self._last])
                tensors = [self._last[site.id] for site in inner]
                if not tensors:
                    tensors = [self._bound[name] for name in origin.names if name in self._bound]
                for tensor in tensors:
                    if tensor > 0:
                        yield Link(tensor, origin.taken, origin.text, origin.line)
                    elif tensor != stand_in(operation):
                        yield Link(tensor)

    def _origin(self, site_id: SiteId, code: str) -> Iterator[_Origin]:
        """Where the program's text says that an operand's value came from."""
        site = self._ledger.site(site_id)
        names = _names_in(code)
        if site is None or (not names and not TAKES.search(code)):
            return
        here = self._sites.get(site.path, ())
        if TAKES.search(code):
            inner = [other for other in here if _within(other, _span(site)) and other.code in code]
            yield _Origin(tuple(inner), _taken(code), code, site.line, frozenset(names))
        for binding in self._behind(site.path, names):
            if taken := _taken(binding.text):
                inner = [other for other in here if _within(other, binding.span)]
                yield _Origin(tuple(inner), taken, binding.text, binding.span[0], binding.reads)

    def _behind(self, path: str, names: set[str]) -> list[_Binding]:
        """The assignments that gave the names their values, and those behind them."""
        if path not in self._bindings:
            text = self._ledger.source(path) or ""
            self._bindings[path] = list(_bindings(text))
        found: list[_Binding] = []
        wanted, seen = list(names), set(names)
        for name in wanted:
            for binding in self._bindings[path]:
                if name in binding.names and binding not in found:
                    found.append(binding)
                    wanted += [read for read in binding.reads if read not in seen]
                    seen |= binding.reads
        return found


class _Origin(msgspec.Struct, frozen=True):
    """What a value was taken from: the expressions (or, with none inside, the names) in the text that took it."""

    sites: tuple[Site, ...]
    taken: str
    text: str
    line: int
    names: frozenset[str]


class _Binding(msgspec.Struct, frozen=True):
    """An assignment of the program's text: the names, the text and span of the value, and the names in it."""

    names: frozenset[str]
    reads: frozenset[str]
    text: str
    span: tuple[int, int, int, int]


def stand_in(taking: Operation) -> TensorId:
    """An id for the Python value that an operation took out."""
    return TensorId(-taking.seq)


def _bindings(text: str) -> Iterator[_Binding]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        match node:
            case ast.Assign():
                targets, value = node.targets, node.value
            case ast.AnnAssign(value=ast.expr() as value) | ast.AugAssign(value=value) | ast.NamedExpr(value=value):
                targets = [node.target]
            case ast.For():
                targets, value = [node.target], node.iter
            case _:
                continue
        names = frozenset(
            child.id
            for target in targets
            for child in ast.walk(target)
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store)
        )
        yield _Binding(names, frozenset(_read(value)), ast.get_source_segment(text, value) or "", _node_span(value))


def _read(node: ast.expr) -> set[str]:
    """The names whose values `node` computes with; a called function's is not among them."""
    called = {
        child.func.id for child in ast.walk(node) if isinstance(child, ast.Call) and isinstance(child.func, ast.Name)
    }
    return {child.id for child in ast.walk(node) if isinstance(child, ast.Name)} - called


def _names_in(code: str) -> set[str]:
    try:
        return _read(ast.parse(code, mode="eval").body)
    except (SyntaxError, ValueError):
        return set()


def _taken(text: str) -> str:
    match = TAKES.search(text)
    return next((group for group in match.groups() if group), "") if match is not None else ""


def _texts(operands: tuple[Operand, ...]) -> Iterator[str]:
    """The texts of operands that hold no tensors."""
    for operand in operands:
        if operand.items and any(item.tensor is not None or item.items for item in operand.items):
            yield from _texts(operand.items)
        elif operand.tensor is None and operand.code:
            yield operand.code


def _span(site: Site) -> tuple[int, int, int, int]:
    return site.line, site.column, site.end_line, site.end_column


def _node_span(node: ast.expr) -> tuple[int, int, int, int]:
    return node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0


def _within(site: Site, span: tuple[int, int, int, int]) -> bool:
    return (site.line, site.column) >= span[:2] and (site.end_line, site.end_column) <= span[2:]


def _outermost(sites: list[Site]) -> list[Site]:
    """Those that lie in none of the others."""
    return [site for site in sites if not any(other != site and _within(site, _span(other)) for other in sites)]
