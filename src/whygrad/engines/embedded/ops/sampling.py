"""Random tensors: the functions over `random`'s distributions."""

# mypy: no-warn-return-any
from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtypes, random
from ..dtypes import Defaults, int64
from ..graph import node_class
from ..tensor import Tensor, wrap
from ..views import check_writable, write
from .define import finished, not_covered, op, record, register, tracking
from .factories import _checked, on_cpu, options


def _generator(g: Any) -> random.Generator:
    return random.default_generator if g is None else g


def _scalar(a: Any) -> Any:
    return a if a.ndim else a[()]


def _sized(name: str, draw: Any) -> None:
    def apply(
        *size: Any,
        generator: Any = None,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        layout: Any = None,
        pin_memory: bool = False,
    ) -> Tensor:
        on_cpu(device)
        d = dtype or Defaults.floating
        random.require_float(f"{name}_cpu" if name == "rand" else "normal_kernel_cpu", d)
        a = draw(_checked(size), d, _generator(generator))
        return options(requires_grad, d, wrap(_scalar(a), d))

    def public(*size: Any, **kwargs: Any) -> Tensor:
        return apply(*((kwargs.pop("size"),) if "size" in kwargs else size), **kwargs)

    register(name, public, method=False)

    def like(
        input: Tensor,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        generator: Any = None,
        memory_format: Any = None,
        layout: Any = None,
    ) -> Tensor:
        return apply(
            input._a.shape, dtype=dtype or input.dtype, device=device, requires_grad=requires_grad, generator=generator
        )

    register(f"{name}_like", like, method=False)


_sized("rand", lambda shape, d, g: random.uniform(shape, d, 0.0, 1.0, g))
_sized("randn", lambda shape, d, g: random.normal(shape, d, 0.0, 1.0, g))


@op("randint", method=False)
def randint(
    low: Any,
    high: Any = None,
    size: Any = None,
    *,
    generator: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    on_cpu(device)
    if size is None:
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    low, high = int(low), int(high)
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    d = dtype or int64
    a = random.integers(_checked((size,)), low, high, _generator(generator))
    return options(requires_grad, d, finished(_scalar(a), d))


@op("randint_like", method=False)
def randint_like(input: Tensor, low: Any, high: Any = None, *, dtype: Any = None, **kwargs: Any) -> Tensor:
    if high is None:
        low, high = 0, low
    return randint(low, high, input._a.shape, dtype=dtype or input.dtype)


@op("randperm", method=False)
def randperm(
    n: int,
    *,
    generator: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    layout: Any = None,
) -> Tensor:
    if n < 0:
        raise RuntimeError(f"n must be non-negative, got{n}")
    d = dtype or int64
    return finished(random.permutation(n, _generator(generator)), d)


BernoulliBackward0 = node_class("BernoulliBackward0", lambda F, node, g: F.zeros_like(g))


@op("bernoulli")
def bernoulli(input: Tensor, p: Any = None, *, generator: Any = None) -> Tensor:
    """0 or 1 with the probabilities given."""
    g = _generator(generator)
    if p is not None:
        r = random.bernoulli(input._a.shape, float(p), g)
    else:
        a = np.asarray(input._a)
        if ((a < 0) | (a > 1)).any():
            raise RuntimeError(
                "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message be "
                "improved?  If so, please report an enhancement request to PyTorch.)"
            )
        u = g.unit(a.size, dtypes.float64 if input.dtype is dtypes.float64 else dtypes.float32).reshape(a.shape)
        r = u < a
    out = finished(_scalar(r.astype(input.dtype.compute)), input.dtype)
    if tracking(input):
        record(BernoulliBackward0, out, (input,))
    return out


def _fill(name: str, draw: Any) -> None:
    def method(self: Tensor, *args: Any, generator: Any = None, **kwargs: Any) -> Tensor:
        check_writable(self)
        from ..modes import modes

        a = draw(self, _generator(generator), *args, **kwargs)
        if self._rg and modes.grad:
            from .convert import ZeroBackward0, _overwrite

            return _overwrite(self, dtypes.store(a, self.dtype), ZeroBackward0, (self,))
        write(self, dtypes.store(a, self.dtype))
        return self

    method.__name__ = name
    register(name, method, torch=False)


def _uniform_(x: Tensor, g: Any, from_: float = 0.0, to: float = 1.0, **kwargs: Any) -> Any:
    from_ = kwargs.get("from", from_)
    if from_ > to:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={from_:g} > to={to:g}")
    random.require_float("check_uniform_bounds", x.dtype)
    return random.uniform(x._a.shape, x.dtype, from_, to, g)


def _normal_(x: Tensor, g: Any, mean: float = 0.0, std: float = 1.0) -> Any:
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    random.require_float("normal_kernel_cpu", x.dtype)
    return random.normal(x._a.shape, x.dtype, mean, std, g)


def _bernoulli_(x: Tensor, g: Any, p: Any = 0.5) -> Any:
    if isinstance(p, Tensor):
        u = g.unit(x._a.size, dtypes.float64 if p.dtype is dtypes.float64 else dtypes.float32).reshape(x._a.shape)
        return (u < p._a).astype(x.dtype.compute)
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    return random.bernoulli(x._a.shape, p, g).astype(x.dtype.compute)


def _random_(x: Tensor, g: Any, from_: int = 0, to: int | None = None, **kwargs: Any) -> Any:
    if to is None and from_:
        from_, to = 0, from_
    if to is None:
        not_covered("Tensor.random_ without bounds")
    return random.integers(x._a.shape, from_, to, g)


_fill("uniform_", _uniform_)
_fill("normal_", _normal_)
_fill("bernoulli_", _bernoulli_)
_fill("random_", _random_)


@op("normal", method=False)
def normal(
    mean: Any,
    std: Any = 1.0,
    size: Any = None,
    *,
    generator: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Normal numbers with the means and deviations given."""
    g = _generator(generator)
    if not isinstance(std, Tensor) and std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    if size is not None:
        d = dtype or Defaults.floating
        return options(requires_grad, d, wrap(_scalar(random.normal(_checked((size,)), d, mean, std, g)), d))
    shaped = [v for v in (mean, std) if isinstance(v, Tensor)]
    from .promote import broadcast_shape

    shape = broadcast_shape(*(v._a.shape for v in shaped))
    d = shaped[0].dtype
    unit = wrap(_scalar(random.normal(shape, d, 0.0, 1.0, g)), d)
    from ..modes import modes

    before, modes.grad = modes.grad, False
    try:
        out: Tensor = unit * std + mean
    finally:
        modes.grad = before
    return out


@op("multinomial")
def multinomial(input: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None) -> Tensor:
    not_covered("torch.multinomial")


register("manual_seed", random.manual_seed, method=False)
register("seed", random.seed, method=False)
register("initial_seed", random.initial_seed, method=False)
register("get_rng_state", random.get_rng_state, method=False)
register("set_rng_state", random.set_rng_state, method=False)
