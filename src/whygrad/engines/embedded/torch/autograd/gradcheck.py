"""`torch.autograd.gradcheck`: a backward compared with central differences."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ... import backward as _backward
from ...dtypes import float64
from ...errors import not_covered
from ...ops.factories import zeros
from ...tensor import Tensor, wrap


class GradcheckError(RuntimeError):
    """The gradients disagree."""

    __module__ = "torch.autograd.gradcheck"


def _tensors(outputs: Any) -> tuple[Tensor, ...]:
    many = (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)
    return tuple(o for o in many if isinstance(o, Tensor) and o._rg)


def _numerical(func: Any, inputs: tuple[Any, ...], x: Tensor, eps: float) -> list[Any]:
    """For each output a matrix (elements of x, elements of the output)."""
    rows: list[list[Any]] = []
    flat = x.detach().view(-1)
    for i in range(flat.numel()):
        before = flat._a[i].copy()

        def at(value: Any, i: int = i) -> list[Any]:
            flat._a[i] = value
            out = func(*inputs)
            many = (out,) if isinstance(out, Tensor) else tuple(out)
            return [np.array(o._a).ravel() for o in many if isinstance(o, Tensor) and o.dtype.kind in "fc"]

        low, high = at(before - before.dtype.type(eps)), at(before + before.dtype.type(eps))
        flat._a[i] = before
        rows.append([(h - lo) / (2 * eps) for h, lo in zip(high, low, strict=True)])
    count = len(rows[0]) if rows else 0
    return [np.stack([r[k] for r in rows]) for k in range(count)]


def _analytical(out: Tensor, diff: list[Tensor], grad_scale: float = 1.0) -> list[Any]:
    """For each input a matrix (elements of the input, elements of out)."""
    columns: list[list[Any]] = [[] for _ in diff]
    n = out.numel()
    for j in range(n):
        v = np.zeros(n, out.dtype.storage)
        v[j] = 1
        shaped = wrap(v.reshape(out._a.shape) if out._a.ndim else v[0], out.dtype)
        grads = _backward.grad(out, diff, shaped, retain_graph=True, allow_unused=True)
        for k, (g, x) in enumerate(zip(grads, diff, strict=True)):
            columns[k].append(np.zeros(x.numel(), x.dtype.storage) if g is None else np.array(g._a).ravel())
    return [np.stack(c, 1) if c else np.zeros((x.numel(), 0)) for c, x in zip(columns, diff, strict=True)]


def gradcheck(
    func: Any,
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: Any = None,
) -> bool:
    """Whether each analytical Jacobian is close to the numerical one."""
    if check_forward_ad or check_batched_grad or not check_backward_ad:
        not_covered("forward-mode and batched checks of gradcheck")
    try:
        return _check(func, inputs, eps, atol, rtol)
    except GradcheckError:
        if raise_exception:
            raise
        return False


def _check(func: Any, inputs: Any, eps: float, atol: float, rtol: float) -> bool:
    args = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    diff = []
    for index, x in enumerate(args):
        if isinstance(x, Tensor) and x._rg:
            if x.dtype is not float64:
                warnings.warn(
                    f"Input #{index} requires gradient and is not a double precision floating point or complex. "
                    "This check will "
                    "likely fail if all the inputs are not of double precision floating point or complex. ",
                    stacklevel=2,
                )
            diff.append(x)
            x.retain_grad()
    if not diff:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )
    from ...tensor import share

    for x in diff:
        share(x)
    all_outputs = func(*args)
    if not _tensors(all_outputs):
        for x in diff:
            for n in _numerical(func, args, x, eps):
                if (n != 0).any():
                    raise GradcheckError("Numerical gradient for function expected to be zero")
        return True
    many = (all_outputs,) if isinstance(all_outputs, Tensor) else tuple(all_outputs)
    numerical = [_numerical(func, args, x, eps) for x in diff]
    floats = [o for o in many if isinstance(o, Tensor) and o.dtype.kind in "fc"]
    for i, out in enumerate(floats):
        if not out._rg:
            continue
        analytical, again = _analytical(out, diff), _analytical(out, diff)
        if any((a != b).any() for a, b in zip(analytical, again, strict=True)):
            raise GradcheckError(
                "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
                "gives different values, although analytical gradient matches numerical gradient."
            )
        for j, x in enumerate(diff):
            n, a = numerical[j][i], analytical[j]
            if not np.allclose(a, n, rtol, atol, equal_nan=False):
                raise GradcheckError(
                    f"Jacobian mismatch for output {i} with respect to input {j},\n"
                    f"numerical:{wrap(n.astype(x.dtype.storage), x.dtype)}\nanalytical:{wrap(a, x.dtype)}\n"
                )
    return True


def gradgradcheck(
    func: Any,
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """gradcheck of the gradients."""
    args = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    if grad_outputs is None:
        outs = _tensors(func(*args))
        from ...ops.define import TORCH

        grads = tuple(TORCH["randn_like"](o).requires_grad_() for o in outs)
    else:
        grads = (grad_outputs,) if isinstance(grad_outputs, Tensor) else tuple(grad_outputs)
    n = len(grads)

    def slopes(*both: Any) -> Any:
        xs, gs = both[:-n], both[-n:]
        outs = _tensors(func(*xs))
        wanted = tuple(x for x in xs if isinstance(x, Tensor) and x._rg)
        made = _backward.grad(outs, wanted, gs, create_graph=True, allow_unused=True)
        return tuple(zeros(*x.shape, dtype=x.dtype) if g is None else g for g, x in zip(made, wanted, strict=True))

    return gradcheck(slopes, (*args, *grads), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception)
