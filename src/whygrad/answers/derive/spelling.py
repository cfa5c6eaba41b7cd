"""Numbers that the source spells out without being literals: `1 / 3`, `float("-inf")`, `math.pi`."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from typing import Any

OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
NAMED = {"pi": math.pi, "e": math.e, "inf": math.inf, "nan": math.nan, "tau": math.tau}
OWNERS = ("math", "torch", "np", "numpy")
LONGEST = 60


def spelled(code: str) -> float | int | None:
    """The number that an expression is for certain, whatever else the program does.

    >>> spelled("1 / 4"), spelled('float("-inf")'), spelled("2 * math.pi") == 2 * math.pi, spelled("len(x)")
    (0.25, -inf, True, None)
    """
    if len(code) > LONGEST:
        return None
    try:
        return _value(ast.parse(code, mode="eval").body)
    except (SyntaxError, ValueError, ArithmeticError, TypeError):
        return None


def _value(node: ast.expr) -> float | int:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATORS:
            result: float = OPERATORS[type(op)](_value(operand))
            return result
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            first, second = _value(left), _value(right)
            if isinstance(op, ast.Pow) and abs(second) > 64:
                raise ValueError(type(node).__name__)
            combined: float = OPERATORS[type(op)](first, second)
            return combined
        case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=str() as text)], keywords=[]):
            return float(text)
        case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner in OWNERS and name in NAMED:
            return NAMED[name]
    raise ValueError(type(node).__name__)
