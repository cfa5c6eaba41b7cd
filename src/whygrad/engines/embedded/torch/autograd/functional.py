"""`torch.autograd.functional`: Jacobians, Hessians and their products, by repeated backward."""

from __future__ import annotations

from typing import Any

from ... import backward as _backward
from ...errors import not_covered
from ...modes import enable_grad
from ...ops.factories import zeros
from ...ops.join import stack
from ...tensor import Tensor


def _prepare(inputs: Any, create_graph: bool) -> tuple[bool, tuple[Tensor, ...]]:
    single = isinstance(inputs, Tensor)
    many = (inputs,) if single else tuple(inputs)
    if create_graph:
        return single, tuple(
            t if t._rg else t.detach().requires_grad_() for t in (x.view_as(x) if x._rg else x for x in many)
        )
    return single, tuple(t.detach().requires_grad_() for t in many)


def jacobian(
    func: Any,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    if strict or strategy != "reverse-mode":
        not_covered("strict=True or forward mode of torch.autograd.functional.jacobian")
    with enable_grad():
        single_in, xs = _prepare(inputs, create_graph)
        out = func(*xs)
        single_out = isinstance(out, Tensor)
        result = []
        for y in (out,) if single_out else out:
            rows: list[list[Any]] = [[] for _ in xs]
            flat = y.reshape(-1)
            for j in range(flat.numel()):
                grads = (
                    (None,) * len(xs)
                    if not y._rg
                    else _backward.grad(flat[j], xs, retain_graph=True, create_graph=create_graph, allow_unused=True)
                )
                for k, (g, x) in enumerate(zip(grads, xs, strict=True)):
                    rows[k].append(zeros(*x.shape, dtype=x.dtype) if g is None else g)
            result.append(
                tuple(
                    stack(r, 0).view(*y.shape, *x.shape) if r else zeros(*y.shape, *x.shape, dtype=x.dtype)
                    for r, x in zip(rows, xs, strict=True)
                )
            )
    if single_in:
        flattened: Any = tuple(r[0] for r in result)
        return flattened[0] if single_out else flattened
    return result[0] if single_out else tuple(result)


def hessian(
    func: Any,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    if strict:
        not_covered("strict=True of torch.autograd.functional.hessian")

    def slope(*xs: Any) -> Any:
        y = func(*xs)
        if not isinstance(y, Tensor):
            raise RuntimeError("The Tensor returned by the function given to hessian should contain a single element")
        if y.numel() != 1:
            raise RuntimeError("The Tensor returned by the function given to hessian should contain a single element")
        grads = _backward.grad(y.reshape(()), xs, create_graph=True, allow_unused=True)
        full = tuple(zeros(*x.shape, dtype=x.dtype) if g is None else g for g, x in zip(grads, xs, strict=True))
        return full[0] if isinstance(inputs, Tensor) else full

    return jacobian(slope, inputs, create_graph)


def vjp(func: Any, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    if strict:
        not_covered("strict=True of torch.autograd.functional.vjp")
    with enable_grad():
        single, xs = _prepare(inputs, create_graph)
        out = func(*xs)
        grads = _backward.grad(out, xs, v, create_graph=create_graph, allow_unused=True, materialize_grads=True)
    plain = out if create_graph else out.detach() if isinstance(out, Tensor) else tuple(o.detach() for o in out)
    return plain, grads[0] if single else grads


def hvp(func: Any, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    if strict:
        not_covered("strict=True of torch.autograd.functional.hvp")
    with enable_grad():
        single, xs = _prepare(inputs, create_graph)
        out = func(*xs)
        grads = _backward.grad(out, xs, create_graph=True, allow_unused=True, materialize_grads=True)
        vs = (v,) if isinstance(v, Tensor) else tuple(v)
        second = _backward.grad(grads, xs, vs, create_graph=create_graph, allow_unused=True, materialize_grads=True)
    return (out if create_graph else out.detach()), second[0] if single else second


vhp = hvp


def jvp(func: Any, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """By the double-backward trick: the vjp is linear in its vector, so its vjp is the jvp."""
    if strict:
        not_covered("strict=True of torch.autograd.functional.jvp")
    with enable_grad():
        _single, xs = _prepare(inputs, create_graph)
        out = func(*xs)
        outs = (out,) if isinstance(out, Tensor) else tuple(out)
        dummy = tuple(zeros(*o.shape, dtype=o.dtype, requires_grad=True) for o in outs)
        grads = _backward.grad(outs, xs, dummy, create_graph=True, allow_unused=True, materialize_grads=True)
        vs = None if v is None else (v,) if isinstance(v, Tensor) else tuple(v)
        result = _backward.grad(grads, dummy, vs, create_graph=create_graph, allow_unused=True, materialize_grads=True)
    plain = outs if create_graph else tuple(o.detach() for o in outs)
    return (plain[0], result[0]) if isinstance(out, Tensor) else (plain, result)
