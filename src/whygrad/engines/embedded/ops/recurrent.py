"""One step of the recurrent cells."""

# mypy: no-warn-return-any
from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from .normalise import linear


def rnn_cell(x: Tensor, h: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Any, b_hh: Any, nonlinearity: str) -> Tensor:
    """h' = tanh(W x + b + U h + c)."""
    z = linear(h, w_hh, b_hh) + linear(x, w_ih, b_ih)
    return z.tanh() if nonlinearity == "tanh" else z.relu()


def lstm_cell(
    x: Tensor, h: Tensor, c: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Any, b_hh: Any
) -> tuple[Tensor, Tensor]:
    """Gates in PyTorch's order: input, forget, cell, output."""
    i, f, g, o = (linear(h, w_hh, b_hh) + linear(x, w_ih, b_ih)).unsafe_chunk(4, -1)
    c2 = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c2.tanh(), c2


def gru_cell(x: Tensor, h: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Any, b_hh: Any) -> Tensor:
    """Gates in PyTorch's order: reset, update, new; the reset gate acts on U h + c."""
    xr, xz, xn = linear(x, w_ih, b_ih).unsafe_chunk(3, -1)
    hr, hz, hn = linear(h, w_hh, b_hh).unsafe_chunk(3, -1)
    r, z = (hr + xr).sigmoid(), (hz + xz).sigmoid()
    n = (xn + hn * r).tanh()
    return (h - n) * z + n
