"""RNN, LSTM, GRU and their cells."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import differentiable, random
from ..nn_parameter import Parameter
from ..ops import recurrent as cells
from ..ops.activation import FUNCTIONAL as F
from ..tensor import Tensor, wrap
from ..warn import warn
from . import init
from .layers import empty
from .module import Module

_MODULE = "torch.nn.modules.rnn"


def _zeros(shape: tuple[int, ...], like: Tensor) -> Tensor:
    return wrap(np.zeros(shape, like.dtype.storage), like.dtype)


class RNNBase(Module):
    """Layers of cells over time, in one or both directions."""

    __module__ = _MODULE
    gates = 1
    nonlinearity = "tanh"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if proj_size:
            from ..errors import not_covered

            not_covered("proj_size of LSTM")
        if not isinstance(dropout, (int, float)) or not 0 <= dropout <= 1 or isinstance(dropout, bool):
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if dropout > 0 and num_layers == 1:
            warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                "num_layers greater "
                f"than 1, but got dropout={dropout} and num_layers={num_layers}"
            )
        if not isinstance(hidden_size, int):
            raise TypeError(f"hidden_size should be of type int, got: {type(hidden_size).__name__}")
        if hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        self.input_size, self.hidden_size, self.num_layers, self.bias = input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional, self.proj_size = (
            batch_first,
            float(dropout),
            bidirectional,
            proj_size,
        )
        self.mode = type(self).__name__
        directions = 2 if bidirectional else 1
        for layer in range(num_layers):
            for direction in range(directions):
                width = input_size if layer == 0 else hidden_size * directions
                suffix = f"_l{layer}" + ("_reverse" if direction else "")
                self.register_parameter(
                    f"weight_ih{suffix}", Parameter(empty(self.gates * hidden_size, width, dtype=dtype))
                )
                self.register_parameter(
                    f"weight_hh{suffix}", Parameter(empty(self.gates * hidden_size, hidden_size, dtype=dtype))
                )
                if bias:
                    self.register_parameter(f"bias_ih{suffix}", Parameter(empty(self.gates * hidden_size, dtype=dtype)))
                    self.register_parameter(f"bias_hh{suffix}", Parameter(empty(self.gates * hidden_size, dtype=dtype)))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self) -> None:
        pass

    def extra_repr(self) -> str:
        s = f"{self.input_size}, {self.hidden_size}"
        if self.num_layers != 1:
            s += f", num_layers={self.num_layers}"
        if self.bias is not True:
            s += f", bias={self.bias}"
        if self.batch_first is not False:
            s += f", batch_first={self.batch_first}"
        if self.dropout != 0:
            s += f", dropout={self.dropout}"
        if self.bidirectional is not False:
            s += f", bidirectional={self.bidirectional}"
        return s

    def _weights(self, layer: int, direction: int) -> tuple[Any, ...]:
        suffix = f"_l{layer}" + ("_reverse" if direction else "")
        w = [getattr(self, f"weight_{k}{suffix}") for k in ("ih", "hh")]
        b = [getattr(self, f"bias_{k}{suffix}") if self.bias else None for k in ("ih", "hh")]
        return (*w, *b)

    def _step(self, x: Tensor, state: Any, weights: tuple[Any, ...]) -> Any:
        return cells.rnn_cell(x, state, *weights, self.nonlinearity)  # type: ignore[call-arg]

    def _check_input(self, x: Tensor) -> None:
        n = x.dim()
        if n not in (2, 3):
            raise ValueError(f"{self.mode}: Expected input to be 2D or 3D, got {n}D instead")
        if x.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {x.shape[-1]}"
            )
        w = next(self.parameters())
        if x.dtype is not w.dtype:
            raise ValueError(
                f"RNN input dtype ({x.dtype}) does not match weight dtype ({w.dtype}). Convert input: "
                f"input.to({w.dtype}), or convert model: model.to({x.dtype})"
            )

    def _run(self, x: Tensor, states: list[Any]) -> tuple[Tensor, list[Any]]:
        """x: (time, batch, features); states: one a layer and direction."""
        directions = 2 if self.bidirectional else 1
        last = []
        for layer in range(self.num_layers):
            steps = x.unbind(0)
            outs = []
            for direction in range(directions):
                weights = self._weights(layer, direction)
                state = states[layer * directions + direction]
                made = []
                for step in reversed(steps) if direction else steps:
                    state = self._step(step, state, weights)
                    made.append(state[0] if isinstance(state, tuple) else state)
                outs.append(differentiable.stack(made[::-1] if direction else made, 0))
                last.append(state)
            x = outs[0] if directions == 1 else differentiable.cat(outs, 2)
            if self.dropout and self.training and layer < self.num_layers - 1:
                x = F["dropout"](x, self.dropout, True)
        return x, last

    def _initial(self, hx: Any, batch: int, x: Tensor, batched: bool) -> Tensor:
        layers = self.num_layers * (2 if self.bidirectional else 1)
        if hx is None:
            return _zeros((layers, batch, self.hidden_size), x)
        if batched:
            if hx.dim() != 3:
                raise RuntimeError(f"For batched 3-D input, hx should also be 3-D but got {hx.dim()}-D tensor")
        else:
            if hx.dim() != 2:
                raise RuntimeError(f"For unbatched 2-D input, hx should also be 2-D but got {hx.dim()}-D tensor")
            hx = hx.unsqueeze(1)
        expected = (layers, batch, self.hidden_size)
        if tuple(hx.shape) != expected:
            raise RuntimeError(f"Expected hidden size {expected}, got {list(hx.shape)}")
        return hx  # type: ignore[no-any-return]

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        self._check_input(input)
        batched = input.dim() == 3
        x = input
        if not batched:
            x = x.unsqueeze(1)
        elif self.batch_first:
            x = x.transpose(0, 1)
        states = list(self._initial(hx, x.shape[1], x, batched).unbind(0))
        out, last = self._run(x, states)
        h = differentiable.stack(last, 0)
        if not batched:
            return out.squeeze(1), h.squeeze(1)
        return (out.transpose(0, 1) if self.batch_first else out), h


class RNN(RNNBase):
    """h_t = tanh(W x_t + b + U h_{t-1} + c)."""

    __module__ = _MODULE

    def __init__(self, *args: Any, nonlinearity: str = "tanh", **kwargs: Any) -> None:
        if len(args) > 3:
            nonlinearity = args[3]
            args = args[:3] + args[4:]
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(*args, **kwargs)
        self.nonlinearity = nonlinearity


class GRU(RNNBase):
    """Gated recurrent units."""

    __module__ = _MODULE
    gates = 3

    def _step(self, x: Tensor, state: Any, weights: tuple[Any, ...]) -> Any:
        return cells.gru_cell(x, state, *weights)


class LSTM(RNNBase):
    """Long short-term memory."""

    __module__ = _MODULE
    gates = 4

    def _step(self, x: Tensor, state: Any, weights: tuple[Any, ...]) -> Any:
        return cells.lstm_cell(x, *state, *weights)

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        self._check_input(input)
        batched = input.dim() == 3
        x = input
        if not batched:
            x = x.unsqueeze(1)
        elif self.batch_first:
            x = x.transpose(0, 1)
        h0, c0 = (None, None) if hx is None else hx
        h, c = (self._initial(s, x.shape[1], x, batched) for s in (h0, c0))
        out, last = self._run(x, list(zip(h.unbind(0), c.unbind(0), strict=True)))
        hn, cn = (differentiable.stack([s[i] for s in last], 0) for i in (0, 1))
        if not batched:
            return out.squeeze(1), (hn.squeeze(1), cn.squeeze(1))
        return (out.transpose(0, 1) if self.batch_first else out), (hn, cn)


class RNNCellBase(Module):
    """One step."""

    __module__ = _MODULE
    gates = 1

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        n = self.gates * hidden_size
        self.weight_ih = Parameter(empty(n, input_size, dtype=dtype))
        self.weight_hh = Parameter(empty(n, hidden_size, dtype=dtype))
        if bias:
            self.bias_ih = Parameter(empty(n, dtype=dtype))
            self.bias_hh = Parameter(empty(n, dtype=dtype))
        else:
            self.register_parameter("bias_ih", None)
            self.register_parameter("bias_hh", None)
        bound = 1.0 / math.sqrt(hidden_size) if hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + (f", bias={self.bias}" if self.bias is not True else "")

    def _prepare(self, x: Tensor, *states: Any) -> tuple[Any, ...]:
        name = type(self).__name__
        if x.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {x.dim()}D instead")
        if x.shape[-1] != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {x.shape[-1]} expected {self.input_size}")
        if x.dim() == 1:
            x = x.unsqueeze(0)
            states = tuple(None if s is None else s.unsqueeze(0) for s in states)
        return (x, *(_zeros((x.shape[0], self.hidden_size), x) if s is None else s for s in states))


class RNNCell(RNNCellBase):
    """One step of an RNN."""

    __module__ = _MODULE

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = nonlinearity

    def extra_repr(self) -> str:
        return super().extra_repr() + (f", nonlinearity={self.nonlinearity}" if self.nonlinearity != "tanh" else "")

    def forward(self, input: Tensor, hx: Any = None) -> Tensor:
        x, h = self._prepare(input, hx)
        out = cells.rnn_cell(x, h, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh, self.nonlinearity)
        return out if input.dim() == 2 else out.squeeze(0)


class LSTMCell(RNNCellBase):
    """One step of an LSTM."""

    __module__ = _MODULE
    gates = 4

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        h0, c0 = (None, None) if hx is None else hx
        x, h, c = self._prepare(input, h0, c0)
        h, c = cells.lstm_cell(x, h, c, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return (h, c) if input.dim() == 2 else (h.squeeze(0), c.squeeze(0))


class GRUCell(RNNCellBase):
    """One step of a GRU."""

    __module__ = _MODULE
    gates = 3

    def forward(self, input: Tensor, hx: Any = None) -> Tensor:
        x, h = self._prepare(input, hx)
        out = cells.gru_cell(x, h, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return out if input.dim() == 2 else out.squeeze(0)


__all__ = ["random"]
