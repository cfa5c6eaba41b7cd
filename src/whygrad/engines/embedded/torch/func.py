"""`torch.func`: gradients as functions of functions, by the same graph. `vmap` is refused."""

from __future__ import annotations

from typing import Any

from .. import backward as _backward
from ..errors import not_covered
from ..modes import enable_grad, modes
from ..tensor import Tensor
from .autograd import functional as _functional


def grad_and_value(func: Any, argnums: Any = 0, has_aux: bool = False) -> Any:
    """The gradient and the value of a function of tensors."""

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        nested = modes.grad and any(isinstance(a, Tensor) and a._rg for a in args)
        numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        with enable_grad():
            inputs = list(args)
            for i in numbers:
                if not isinstance(args[i], Tensor):
                    not_covered("torch.func.grad of nested structures")
                inputs[i] = args[i].view_as(args[i]) if args[i]._rg else args[i].detach().requires_grad_()
            out = func(*inputs, **kwargs)
            aux = None
            if has_aux:
                out, aux = out
            if not isinstance(out, Tensor):
                raise RuntimeError("Expected the differentiated function to return a tensor, got " + str(type(out)))
            if out.dim() != 0:
                raise RuntimeError(
                    f"Expected the differentiated function to return a scalar tensor, got tensor with {out.dim()} dims."
                )
            wanted = [inputs[i] for i in numbers]
            grads = _backward.grad(
                out, wanted, create_graph=nested or _Depth.level > 1, allow_unused=True, materialize_grads=True
            )
        result = grads[0] if isinstance(argnums, int) else grads
        value = out if nested else out.detach()
        return (result, (value, aux)) if has_aux else (result, value)

    def counted(*args: Any, **kwargs: Any) -> Any:
        _Depth.level += 1
        try:
            return wrapper(*args, **kwargs)
        finally:
            _Depth.level -= 1

    return counted


class _Depth:
    """How many differentiations are nested."""

    level = 0


def grad(func: Any, argnums: Any = 0, has_aux: bool = False) -> Any:
    """The gradient of a function of tensors."""
    both = grad_and_value(func, argnums, has_aux)

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        g, value = both(*args, **kwargs)
        return (g, value[1]) if has_aux else g

    return wrapper


def vjp(func: Any, *primals: Any, has_aux: bool = False) -> Any:
    if has_aux:
        not_covered("has_aux of torch.func.vjp")
    with enable_grad():
        inputs = tuple(p.detach().requires_grad_() for p in primals)
        out = func(*inputs)

    def pull(v: Any) -> Any:
        return _backward.grad(out, inputs, v, retain_graph=True, allow_unused=True, materialize_grads=True)

    return (out.detach() if isinstance(out, Tensor) else tuple(o.detach() for o in out)), pull


def jvp(func: Any, primals: Any, tangents: Any, **kwargs: Any) -> Any:
    if kwargs:
        not_covered("options of torch.func.jvp")
    return _functional.jvp(func, tuple(primals), tuple(tangents))


def jacrev(func: Any, argnums: int = 0, **kwargs: Any) -> Any:
    if kwargs:
        not_covered("options of torch.func.jacrev")

    def wrapper(*args: Any) -> Any:
        return _functional.jacobian(lambda x: func(*args[:argnums], x, *args[argnums + 1 :]), args[argnums])

    return wrapper


jacfwd = jacrev


def hessian(func: Any, argnums: int = 0) -> Any:
    def wrapper(*args: Any) -> Any:
        return _functional.hessian(lambda x: func(*args[:argnums], x, *args[argnums + 1 :]), args[argnums])

    return wrapper


def vmap(*args: Any, **kwargs: Any) -> Any:
    not_covered("torch.func.vmap")


def functional_call(*args: Any, **kwargs: Any) -> Any:
    not_covered("torch.func.functional_call")
