"""PyTorch's CPU generator: the Mersenne twister, and how each distribution turns its words into numbers.

Bit for bit those of PyTorch on x86-64, so that an exercise prints the same digits on both engines. NumPy's MT19937 is
the same twister; what differs is the way from 32-bit words to numbers, which is written out here.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import dtypes
from .errors import not_covered
from .tensor import Tensor, wrap
from .vector_math import cosine_and_sine, fma, logarithm

DEFAULT_SEED = 67280421310721


class Generator:
    """A stream of 32-bit words, and the second normal number that Box-Muller leaves over."""

    __module__ = "torch._C"

    def __init__(self, device: Any = "cpu"):
        self.device = dtypes.device(device)
        self._spare: float | None = None
        self._made: Any = None
        self._seed = DEFAULT_SEED
        self.manual_seed(DEFAULT_SEED)

    def manual_seed(self, seed: int) -> Generator:
        seed = int(seed)
        if seed < 0:
            seed += 1 << 64
        self._seed = seed & ((1 << 64) - 1)
        self._made = None
        self._spare = None
        return self

    @property
    def _twister(self) -> Any:
        """Made when first drawn from: `numpy.random` takes time to load."""
        if self._made is None:
            self._made = np.random.MT19937()
            self._made._legacy_seeding(self._seed & 0xFFFFFFFF)
        return self._made

    def initial_seed(self) -> int:
        return self._seed

    def seed(self) -> int:
        import secrets

        fresh = secrets.randbits(64)
        self.manual_seed(fresh)
        return self._seed

    def get_state(self) -> Tensor:
        state = self._twister.state["state"]
        words = np.concatenate(
            [
                np.asarray(state["key"], np.uint64),
                [state["pos"]],
                [self._seed & 0xFFFFFFFF, self._seed >> 32],
                np.asarray([0.0 if self._spare is None else self._spare, self._spare is not None], np.float64).view(
                    np.uint64
                ),
            ]
        )
        return wrap(words.astype(np.uint64).view(np.uint8).copy(), dtypes.uint8)

    def set_state(self, state: Tensor) -> Generator:
        words = np.asarray(state._a).view(np.uint64)
        if words.size != 629:
            raise RuntimeError("Expected a state of this engine's generator")
        self._seed = int(words[625]) | int(words[626]) << 32
        self._twister.state = {
            "bit_generator": "MT19937",
            "state": {"key": words[:624].astype(np.uint32), "pos": int(words[624])},
        }
        spare, has = words[627:].view(np.float64)
        self._spare = float(spare) if has else None
        return self

    def words(self, n: int) -> Any:
        """`n` 32-bit words, as uint64."""
        return self._twister.random_raw(n)

    def long_words(self, n: int) -> Any:
        """`n` 64-bit words: the first of two 32-bit words is the higher."""
        pairs = self._twister.random_raw(2 * n)
        return (pairs[0::2] << np.uint64(32)) | pairs[1::2]

    def unit(self, n: int, d: dtypes.dtype) -> Any:
        """Uniform on [0, 1): 24 bits for float32, 53 for float64."""
        if d is dtypes.float64:
            return (self.long_words(n) & np.uint64((1 << 53) - 1)).astype(np.float64) * 2.0**-53
        return (self.words(n) & np.uint64((1 << 24) - 1)).astype(np.float32) * np.float32(2.0**-24)


default_generator = Generator()
default_generator.seed()  # a program that sets no seed draws anew in each process, as with PyTorch


def manual_seed(seed: Any) -> Generator:
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    return default_generator.seed()


def initial_seed() -> int:
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    default_generator.set_state(new_state)


def uniform(shape: tuple[int, ...], d: dtypes.dtype, low: float, high: float, g: Generator) -> Any:
    """Numbers between low and high, scaled in the type itself."""
    n = math.prod(shape)
    u = g.unit(n, d)
    t = d.compute.type
    out = u * t(t(high) - t(low)) + t(low) if d is dtypes.float64 else fma(u, t(t(high) - t(low)), t(low))
    return dtypes.store(out, d).reshape(shape)


def normal(shape: tuple[int, ...], d: dtypes.dtype, mean: float, std: float, g: Generator) -> Any:
    """Box-Muller: pairs in double precision for fewer than 16 numbers, else blocks of 16 in the type itself."""
    n = math.prod(shape)
    if n < 16:
        return dtypes.store(np.array([_one_normal(g) * std + mean for _ in range(n)], np.float64), d).reshape(shape)
    t = d.compute.type
    values = g.unit(n, d)
    whole = n - n % 16
    out = np.empty(n, d.compute)
    out[:whole] = _blocks(values[:whole], t(mean), t(std), d)
    if n % 16:
        out[n - 16 :] = _blocks(g.unit(16, d), t(mean), t(std), d)
    return dtypes.store(out, d).reshape(shape)


def _one_normal(g: Generator) -> float:
    if g._spare is not None:
        value, g._spare = g._spare, None
        return value
    u1, u2 = (float(v) for v in g.unit(2, dtypes.float64))
    r = math.sqrt(-2.0 * math.log1p(-u2))
    theta = 2.0 * math.pi * u1
    g._spare = r * math.sin(theta)
    return r * math.cos(theta)


def _blocks(values: Any, mean: Any, std: Any, d: dtypes.dtype) -> Any:
    v = values.reshape(-1, 2, 8)
    u1, u2 = 1 - v[:, 0], v[:, 1]
    if d is dtypes.float32:
        radius = np.sqrt(np.float32(-2) * logarithm(u1))
        cos, sin = cosine_and_sine(np.float32(2 * math.pi) * u2)
        return np.stack([fma(radius * cos, std, mean), fma(radius * sin, std, mean)], 1).reshape(-1)
    radius = np.sqrt(-2 * _each(math.log, u1))
    theta = 2 * math.pi * u2
    cos, sin = _each(math.cos, theta), _each(math.sin, theta)
    return np.stack([radius * cos * std + mean, radius * sin * std + mean], 1).reshape(-1)


def _each(function: Any, a: Any) -> Any:
    """The C library's function, whose last bit NumPy's own versions do not always have."""
    return np.array([function(v) for v in a.ravel().tolist()]).reshape(a.shape)


def integers(shape: tuple[int, ...], low: int, high: int, g: Generator) -> Any:
    """low .. high-1: a word modulo the range."""
    n = math.prod(shape)
    span = high - low
    if span >= 1 << 28:
        return (g.long_words(n) % np.uint64(span)).astype(np.int64).reshape(shape) + low
    return (g.words(n) % np.uint64(span)).astype(np.int64).reshape(shape) + low


def permutation(n: int, g: Generator) -> Any:
    """Fisher-Yates from the front, one word a place."""
    out = list(range(n))
    words = g.words(max(n - 1, 0)).tolist()
    for i, w in enumerate(words):
        j = i + w % (n - i)
        out[i], out[j] = out[j], out[i]
    return np.array(out, np.int64)


def bernoulli(shape: tuple[int, ...], p: float, g: Generator) -> Any:
    """Whether a double on [0, 1) is below p. (On Intel processors PyTorch leaves this to MKL, with other numbers.)"""
    return (g.unit(math.prod(shape), dtypes.float64) < p).reshape(shape)


def require_float(name: str, d: dtypes.dtype) -> None:
    if not d.is_floating_point:
        raise RuntimeError(f"\"{name}\" not implemented for '{d.legacy}'")
    if d.itemsize == 2:
        not_covered(f"random numbers in {d}")
