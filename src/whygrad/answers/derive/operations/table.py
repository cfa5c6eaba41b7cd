"""The table: an operation's plain name -> what it computes, in NumPy.

The functions beside this module have PyTorch's parameter names, so a recorded call binds to them as it did
to PyTorch's. They take and give float64 arrays (integers and booleans where PyTorch has them), and know
nothing of gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"
Dims: TypeAlias = int | Sequence[int] | None
NumpyFunction: TypeAlias = Callable[..., Any]

F = TypeVar("F", bound=Callable[..., Any])

TABLE: dict[str, NumpyFunction] = {}
KINKS: dict[str, NumpyFunction] = {}


class UnsupportedError(Exception):
    """The operation is in the table, but not with these arguments; the text says what is missing."""


def operation(*names: str) -> Callable[[F], F]:
    """Enter a function under PyTorch's names for it."""

    def enter(function: F) -> F:
        for name in names:
            TABLE[name] = function
        return function

    return enter


def kink(*names: str) -> Callable[[F], F]:
    """Enter a test of an operation's arguments: does any element sit where its slope jumps?"""

    def enter(function: F) -> F:
        for name in names:
            KINKS[name] = function
        return function

    return enter


def axes(dim: Dims, rank: int) -> tuple[int, ...] | None:
    """PyTorch's `dim` as NumPy's `axis`: no dimensions at all (`None` or `()`) means every one."""
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return None
    return tuple(d % max(rank, 1) for d in ([dim] if isinstance(dim, int) else dim)) if rank else None


def several(first: Any, rest: Sequence[int]) -> tuple[int, ...]:
    """Sizes or dimensions that PyTorch takes as one sequence or as separate arguments."""
    if isinstance(first, int | np.integer):
        return int(first), *map(int, rest)
    return tuple(int(size) for size in first)


def reduced(losses: Array, reduction: str) -> Any:
    """A loss per element, reduced as PyTorch's `reduction` says."""
    match reduction:
        case "mean":
            return losses.mean()
        case "sum":
            return losses.sum()
        case "none":
            return losses
        case _:
            raise UnsupportedError(f"reduction={reduction!r}")
