"""How a tensor prints: the digits, columns, ellipses and suffixes of `torch._tensor_str`."""

# mypy: no-warn-return-any
from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import dtypes
from .tensor import Tensor


class Options:
    """`torch.set_printoptions`."""

    precision = 4
    threshold: float = 1000
    edgeitems = 3
    linewidth = 80
    sci_mode: bool | None = None


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    profiles = {"default": (4, 1000, 3, 80), "short": (2, 1000, 2, 80), "full": (4, math.inf, 3, 80)}
    if profile is not None:
        Options.precision, Options.threshold, Options.edgeitems, Options.linewidth = profiles[profile]
    for name, value in (
        ("precision", precision),
        ("threshold", threshold),
        ("edgeitems", edgeitems),
        ("linewidth", linewidth),
    ):
        if value is not None:
            setattr(Options, name, value)
    Options.sci_mode = sci_mode


class _Formatter:
    """One format for all elements of a tensor."""

    def __init__(self, a: Any, d: dtypes.dtype):
        self.floating = d.is_floating_point
        self.int_mode = True
        self.sci_mode = False
        self.max_width = 1
        if not self.floating:
            for value in np.ravel(a).tolist():
                self.max_width = max(self.max_width, len(f"{value}"))
            return
        flat = np.asarray(a, np.float64).ravel()
        finite = flat[np.isfinite(flat) & (flat != 0)]
        if finite.size == 0:
            return
        size = np.abs(finite)
        low, high = float(size.min()), float(size.max())
        self.int_mode = bool(np.all(finite == np.ceil(finite)))
        p = Options.precision
        self.sci_mode = high / low > 1000.0 or high > 1.0e8 or low < 1.0e-4
        if Options.sci_mode is not None:
            self.sci_mode = Options.sci_mode
        form = f"{{:.{p}e}}" if self.sci_mode else "{:.0f}." if self.int_mode else f"{{:.{p}f}}"
        for value in finite.tolist():
            self.max_width = max(self.max_width, len(form.format(value)))

    def width(self) -> int:
        return self.max_width

    def format(self, value: Any) -> str:
        if self.floating:
            if self.sci_mode:
                text = f"{{:{self.max_width}.{Options.precision}e}}".format(value)
            elif self.int_mode:
                text = f"{value:.0f}"
                if math.isfinite(value):
                    text += "."
            else:
                text = f"{{:.{Options.precision}f}}".format(value)
        else:
            text = f"{value}"
        return (self.max_width - len(text)) * " " + text


def _vector(a: Any, indent: int, summarize: bool, formatter: _Formatter, d: dtypes.dtype) -> str:
    per_line = max(1, math.floor((Options.linewidth - indent) / (formatter.width() + 2)))

    def text(value: Any) -> str:
        return formatter.format(value)

    e = Options.edgeitems
    if summarize and not e:
        data = ["..."]
    elif summarize and a.shape[0] > 2 * e:
        data = [text(v) for v in a[:e].tolist()] + [" ..."] + [text(v) for v in a[-e:].tolist()]
    else:
        data = [text(v) for v in a.tolist()]
    lines = [data[i : i + per_line] for i in range(0, len(data), per_line)]
    return "[" + ("," + "\n" + " " * (indent + 1)).join(", ".join(line) for line in lines) + "]"


def _block(a: Any, indent: int, summarize: bool, formatter: _Formatter, d: dtypes.dtype) -> str:
    if a.ndim == 0:
        return formatter.format(a.item())
    if a.ndim == 1:
        return _vector(a, indent, summarize, formatter, d)
    e = Options.edgeitems
    if summarize and a.shape[0] > 2 * e:
        parts = (
            [_block(a[i], indent + 1, summarize, formatter, d) for i in range(e)]
            + ["..."]
            + [_block(a[i], indent + 1, summarize, formatter, d) for i in range(len(a) - e, len(a))]
        )
    else:
        parts = [_block(a[i], indent + 1, summarize, formatter, d) for i in range(a.shape[0])]
    return "[" + ("," + "\n" * (a.ndim - 1) + " " * (indent + 1)).join(parts) + "]"


def _ends(a: Any) -> Any:
    """The part of a large array that is shown."""
    e = Options.edgeitems
    if a.ndim == 0:
        return a
    if a.ndim == 1:
        return np.concatenate([a[:e], a[-e:]]) if len(a) > 2 * e else a
    rows = [*range(e), *range(len(a) - e, len(a))] if a.shape[0] > 2 * e else list(range(a.shape[0]))
    return np.stack([_ends(a[i]) for i in rows]) if rows else a


def tensor_str(x: Tensor) -> str:
    """`repr` of a tensor."""
    from .nn_parameter import Parameter

    prefix = "tensor("
    indent = len(prefix)
    suffixes = []
    a = np.asarray(x._a)
    d = x.dtype
    usual = d in (dtypes.Defaults.floating, dtypes.int64, dtypes.bool_)
    if a.size == 0:
        if a.ndim != 1:
            suffixes.append(f"size={tuple(a.shape)}")
        if d is not dtypes.Defaults.floating:
            suffixes.append(f"dtype={d}")
        text = "[]"
    else:
        if not usual:
            suffixes.append(f"dtype={d}")
        summarize = a.size > Options.threshold
        formatter = _Formatter(_ends(a) if summarize else a, d)
        text = _block(a, indent, summarize, formatter, d)
    node = x.grad_fn
    if node is not None:
        name = node.name()
        if name == "torch::autograd::CopySlices":
            name = "CopySlices"
        suffixes.append(f"grad_fn=<{name}>")
    elif x._rg:
        suffixes.append("requires_grad=True")
    out = _with_suffixes(prefix + text, suffixes, indent)
    return f"Parameter containing:\n{out}" if isinstance(x, Parameter) else out


def _with_suffixes(text: str, suffixes: list[str], indent: int) -> str:
    out = [text]
    last = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        n = len(suffix)
        if last + n + 2 > Options.linewidth:
            out.append(",\n" + " " * indent + suffix)
            last = indent + n
        else:
            out.append(", " + suffix)
            last += n + 2
    out.append(")")
    return "".join(out)
