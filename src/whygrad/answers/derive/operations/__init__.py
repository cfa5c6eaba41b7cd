"""What recorded operations compute, in float64 NumPy: one table, filled by the modules of this package."""

from __future__ import annotations

from whygrad.answers.derive.operations import elementwise, layers, losses, products, reductions, shaping
from whygrad.answers.derive.operations.table import KINKS, TABLE, NumpyFunction, UnsupportedError

__all__ = [
    "UnsupportedError", "elementwise", "find", "find_kink", "layers", "losses", "plain_name", "products", "reductions",
    "shaping", "unknown",
]  # fmt: skip

KEPT = ("linalg.", "autograd.")
PREFIXES = ("torch.nn.functional.", "torch.special.", "torch.functional.", "torch.Tensor.", "torch._C._nn.", "torch.")


def plain_name(function: str) -> str:
    """`torch.nn.functional.relu` and the method `relu` are one operation: `relu`.

    >>> plain_name("torch.nn.functional.relu"), plain_name("torch.linalg.norm"), plain_name("numpy.sin")
    ('relu', 'linalg.norm', 'numpy.sin')
    """
    for prefix in PREFIXES:
        if function.startswith(prefix):
            rest = function[len(prefix) :]
            return rest if "." not in rest or rest.startswith(KEPT) else function
    return function


def find(name: str) -> NumpyFunction | None:
    """The NumPy function for an operation, in place or not (`add_` writes what `add` computes)."""
    return TABLE.get(name) or (TABLE.get(name[:-1]) if name.endswith("_") else None)


RANDOM = frozenset({
    "bernoulli", "bernoulli_", "cauchy_", "exponential_", "feature_dropout", "geometric_", "gumbel_softmax",
    "log_normal_", "multinomial", "normal", "normal_", "poisson", "rand", "rand_like", "randint", "randint_like",
    "randn", "randn_like", "random_", "randperm", "rrelu", "uniform_",
})  # fmt: skip
"""Operations that draw random numbers."""


def unknown(name: str) -> NumpyFunction:
    """Stands for an operation that is not in the table: whoever calls it learns why."""

    def refuse(*_: object, **__: object) -> None:
        raise UnsupportedError(
            "it drew random numbers" if name in RANDOM else f"`{name}` is not in the table of operations"
        )

    return refuse


def find_kink(name: str) -> NumpyFunction | None:
    """The test of whether an operation's arguments sit where its slope jumps, if it has such places."""
    return KINKS.get(name) or (KINKS.get(name[:-1]) if name.endswith("_") else None)
