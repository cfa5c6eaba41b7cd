"""When two gradients agree: how far apart rounding alone may leave them."""

from __future__ import annotations

from collections.abc import Iterable

ROUNDING = {"float64": 2.0**-52, "float32": 2.0**-23, "tf32": 2.0**-10, "bfloat16": 2.0**-7, "float16": 2.0**-10}
"""The distance from 1 to the next number, by dtype. In `tf32` accelerators may multiply float32 matrices."""

SLACK = {"float64": 4096, "float32": 840, "tf32": 8, "bfloat16": 4, "float16": 8}
"""How many such distances a gradient of moderate size may gather.

In float32, 840 of them are 1e-4 of the gradient's scale: a sum of n terms that cancel nothing gathers about the
square root of n of them, and the gradients that are derived here come from far fewer than 840^2 operations. A
wrong gradient (a factor, a missing path, a sign) is off by far more. The coarser dtypes cannot afford as many.
"""


def rounding(dtype: str) -> float:
    return ROUNDING.get(dtype.removeprefix("torch."), 2.0**-3 if "float8" in dtype else 2.0**-23)


def coarsest(dtypes: Iterable[str]) -> str:
    """The floating dtype among them that rounds most."""
    floating = [dtype for dtype in dtypes if "float" in dtype or dtype == "tf32"]
    return max(floating, key=rounding, default="float32")


def relative_tolerance(dtype: str) -> float:
    """How far a gradient computed in `dtype` may be from the exact one, as a share of its scale.

    >>> round(relative_tolerance("float32"), 5)
    0.0001
    """
    return rounding(dtype) * SLACK.get(dtype.removeprefix("torch."), 2)
