"""PyTorch's own operator catalogue run against the embedded engine: `python tests/engines/embedded/operators.py`.

Each sample of `op_db` is run on both: values, dtypes, shapes, gradients, second gradients. The command rewrites
`covered_operators.txt`: the operators of which every sample that was tried is right.
"""

from __future__ import annotations

import re
import sys
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from judge import flat, to_embedded

from whygrad.engines.embedded import torch as embedded
from whygrad.engines.embedded.errors import NotInEmbeddedEngine
from whygrad.engines.embedded.tensor import Tensor

TABLE = Path(__file__).parent / "covered_operators.txt"
CONVERSIONS = ("float", "double", "half", "long", "int", "short", "bool", "byte", "char", "bfloat16")
NOT_COMPARABLE = re.compile(
    r"masked\.|empty|zero_$|bfloat16|cfloat|cdouble|chalf|resize|normal|uniform|rand|as_strided|_softmax_backward|new_empty|sparse|bernoulli|fft\.|special\."
)
"""Uninitialised memory, random numbers (tested bit for bit elsewhere), and what the engine does not claim."""


@dataclass
class Verdict:
    """How many samples were tried, how many were right, and what went wrong."""

    name: str
    tried: int = 0
    right: int = 0
    refused: int = 0
    faults: list[str] = field(default_factory=list)


def catalogue() -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    return {o.name + (f".{o.variant_test_name}" if o.variant_test_name else ""): o for o in op_db}


def counterpart(name: str) -> Any:
    """The embedded engine's function of that name, called as the catalogue calls PyTorch's."""
    if name == "__getitem__":
        return lambda x, *key: x[key[0] if len(key) == 1 else key]
    if name == "where":
        return lambda x, condition, other: embedded.where(condition, x, other)
    if name == "einsum":
        return lambda operands, equation: embedded.einsum(equation, *operands)
    *path, last = name.split(".")
    if not path and last in CONVERSIONS:
        return getattr(Tensor, last)
    module = embedded
    if name in ("T", "H", "mT", "mH"):
        return lambda x: getattr(x, name)
    if name == "nn.functional.embedding":
        return lambda weight, index, **settings: embedded.nn.functional.embedding(index, weight, **settings)
    for part in path:
        try:
            module = getattr(module, part)
        except AttributeError:
            raise NotInEmbeddedEngine(name) from None
    found = vars(module).get(last)
    if found is None:
        found = getattr(Tensor, last, None)
    if found is None:
        raise NotInEmbeddedEngine(name)
    return found


def reference(name: str, op: Any) -> Any:
    return (lambda x, *key: x[key[0] if len(key) == 1 else key]) if name == "__getitem__" else op.op


def judge_operator(name: str, op: Any, samples_at_most: int, types: Any = (torch.float64, torch.float32)) -> Verdict:
    """Run the samples of one operator on both engines."""
    verdict = Verdict(name)
    ours = counterpart(name)
    for dtype in types:
        if not op.supports_dtype(dtype, "cpu"):
            continue
        try:
            samples = list(op.sample_inputs("cpu", dtype, requires_grad=op.supports_autograd))
        except Exception:
            continue
        for sample in samples[:: max(1, len(samples) // samples_at_most)]:
            _judge_sample(verdict, reference(name, op), ours, sample, dtype, op.supports_autograd)
    return verdict


def _judge_sample(verdict: Verdict, real: Any, ours: Any, sample: Any, dtype: Any, differentiable: bool) -> None:
    tolerance = 1e-9 if dtype is torch.float64 else 2e-4
    try:
        given = to_embedded((sample.input, tuple(sample.args), dict(sample.kwargs)))
    except (NotInEmbeddedEngine, AttributeError, ValueError, RuntimeError):
        return
    torch.manual_seed(42)
    embedded.manual_seed(42)
    try:
        expected = real(sample.input, *sample.args, **sample.kwargs)
    except Exception:
        return
    verdict.tried += 1
    try:
        got = ours(given[0], *given[1], **given[2])
        _compare(expected, got, tolerance)
        if differentiable:
            _compare_gradients(expected, got, (sample.input, tuple(sample.args), dict(sample.kwargs)), given, tolerance)
    except NotInEmbeddedEngine:
        verdict.refused += 1
    except Exception as error:
        verdict.faults.append(f"{sample.summary()}: {type(error).__name__} {str(error)[:200]}")
    else:
        verdict.right += 1


def _tensors(value: Any, cls: Any) -> list[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    return [
        v
        for item in flat(value)
        for v in (_tensors(item, cls) if isinstance(item, dict) else [item])
        if isinstance(v, cls)
    ]


def _array(x: Any) -> Any:
    return x.detach().numpy() if x.dtype is torch.bool else (x.detach() + 0).numpy()


def _compare(expected: Any, got: Any, tolerance: float) -> None:
    real, ours = flat(expected), flat(got)
    assert len(real) == len(ours), f"{len(real)} results, not {len(ours)}"
    for a, b in zip(real, ours, strict=True):
        if isinstance(a, torch.Tensor):
            assert isinstance(b, Tensor), type(b)
            assert str(a.dtype) == str(b.dtype), (a.dtype, b.dtype)
            assert tuple(a.shape) == tuple(b.shape), (a.shape, b.shape)
            x, y = _array(a), np.asarray(b.detach().numpy())
            np.testing.assert_allclose(y.astype(float), x.astype(float), rtol=tolerance, atol=tolerance)
        elif isinstance(a, (bool, int, float)):
            assert a == b or abs(a - b) <= tolerance or a != a, (a, b)


def _compare_gradients(expected: Any, got: Any, real_in: Any, ours_in: Any, tolerance: float) -> None:
    leaves = [
        (a, b)
        for a, b in zip(_tensors(list(real_in), torch.Tensor), _tensors(list(ours_in), Tensor), strict=True)
        if a.requires_grad
    ]
    outs = [o for o in _tensors(expected, torch.Tensor) if o.requires_grad and o.dtype.is_floating_point]
    ours_outs = [o for o in _tensors(got, Tensor) if o.requires_grad]
    assert len(outs) == len(ours_outs), "requires_grad"
    if not outs or not leaves:
        return
    double = outs[0].dtype is torch.float64
    vectors = [torch.rand_like(o) for o in outs]
    try:
        first = torch.autograd.grad(outs, [a for a, _ in leaves], vectors, allow_unused=True, create_graph=double)
    except Exception:
        return
    ours_first = embedded.autograd.grad(
        ours_outs, [b for _, b in leaves], to_embedded(vectors), allow_unused=True, create_graph=double
    )
    pairs = []
    for a, b in zip(first, ours_first, strict=True):
        assert (a is None) == (b is None), "a gradient is None"
        if a is not None and not a.is_sparse:
            _compare(a, b, 10 * tolerance)
            if a.requires_grad and b.requires_grad:
                pairs.append((a, b))
    if double and pairs:
        _compare_second(pairs, leaves)


def _compare_second(pairs: Any, leaves: Any) -> None:
    vectors = [torch.rand_like(a) for a, _ in pairs]
    try:
        second = torch.autograd.grad([a for a, _ in pairs], [a for a, _ in leaves], vectors, allow_unused=True)
    except Exception:
        return
    ours = embedded.autograd.grad(
        [b for _, b in pairs], [b for _, b in leaves], to_embedded(vectors), allow_unused=True
    )
    for a, b, (leaf, _) in zip(second, ours, leaves, strict=True):
        x = np.zeros(tuple(leaf.shape)) if a is None else _array(a)
        y = np.zeros(tuple(leaf.shape)) if b is None else b.detach().numpy()
        np.testing.assert_allclose(y, x, rtol=1e-7, atol=1e-7)


def covered() -> list[str]:
    return [line.split("\t")[0] for line in TABLE.read_text().splitlines() if line and not line.startswith("#")]


def main() -> None:
    warnings.simplefilter("ignore")
    at_most = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    lines, tried, right, whole = [], 0, 0, 0
    operators = catalogue()
    for name, op in operators.items():
        if NOT_COMPARABLE.search(name):
            continue
        try:
            verdict = judge_operator(name, op, at_most)
        except NotInEmbeddedEngine:
            continue
        tried, right = tried + verdict.tried, right + verdict.right
        if verdict.tried and verdict.right == verdict.tried:
            whole += 1
            lines.append(f"{name}\t{verdict.right}")
        elif verdict.tried:
            print(
                f"{name}: {verdict.right} of {verdict.tried}, refused {verdict.refused}",
                *verdict.faults[:2],
                sep="\n    ",
            )
    TABLE.write_text(
        "# Operators of PyTorch's catalogue, every sample tried right to the second gradient: name, samples.\n"
        "# Written by operators.py; a test holds each of them.\n" + "\n".join(lines) + "\n"
    )
    print(f"{whole} of {len(operators)} operators in full; {right} of {tried} samples tried")


if __name__ == "__main__":
    main()
