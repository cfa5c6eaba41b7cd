"""Products of matrices and vectors, and the decompositions of `torch.linalg`."""

# mypy: no-warn-return-any
from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import dtypes
from ..autocast import lowered
from ..graph import Node, node_class
from ..modes import modes
from ..tensor import Tensor, brackets, cpp_name
from .define import (
    bare,
    check_tensor,
    finished,
    in_place,
    not_covered,
    op,
    record,
    register,
    tracking,
)
from .norms import vector_norm
from .shape import expand, reshape, unsafe_view

LINALG: dict[str, Any] = {}


def _same_type(name: str, x: Tensor, y: Tensor) -> None:
    if x.dtype is not y.dtype:
        if name in ("dot", "vdot"):
            raise RuntimeError(
                f"dot : expected both vectors to have same dtype, but found {x.dtype.legacy} and {y.dtype.legacy}"
            )
        if name == "bmm":
            raise RuntimeError(f"expected scalar type {x.dtype.legacy} but found {y.dtype.legacy}")
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {cpp_name(x.dtype)} != {cpp_name(y.dtype)}"
        )


def _product(x: Tensor, y: Tensor) -> Tensor:
    if x.dtype is dtypes.bool_:
        raise RuntimeError("\"addmm_impl_cpu_\" not implemented for 'Bool'")
    return finished(np.matmul(bare(x), bare(y)), x.dtype)


def _mm_rule(F: Any, node: Node, g: Any, x: Any, y: Any, turned: bool = False) -> Any:
    """Z = X Y;  dX = G Y^T, dY = X^T G. `turned`: Y lies in memory by columns, and so does its gradient then."""
    if len(g.shape) == 2:
        return (
            None if y is None else F.matmul(g, F.t(y)),
            None if x is None else F.t(F.matmul(F.t(g), x)) if turned else F.matmul(F.t(x), g),
        )
    return (
        None if y is None else F.matmul(g, F.transpose(y, 1, 2)),
        None if x is None else F.matmul(F.transpose(x, 1, 2), g),
    )


def _mv_rule(F: Any, node: Node, g: Any, x: Any, y: Any) -> Any:
    """z = X y;  dX = g y^T, dy = X^T g."""
    return (
        None if y is None else F.unsqueeze(g, 1) * F.unsqueeze(y, 0),
        None if x is None else F.matmul(F.transpose(x, 0, 1), g),
    )


def _dot_rule(F: Any, node: Node, g: Any, x: Any, y: Any) -> Any:
    return (None if y is None else g * y), (None if x is None else g * x)


MmBackward0 = node_class("MmBackward0", _mm_rule, ("self", "mat2"))
BmmBackward0 = node_class("BmmBackward0", _mm_rule, ("self", "mat2"))
MvBackward0 = node_class("MvBackward0", _mv_rule, ("self", "vec"))
DotBackward0 = node_class("DotBackward0", _dot_rule, ("self", "tensor"))


def _recorded(cls: type[Node], out: Tensor, x: Tensor, y: Tensor) -> Tensor:
    if tracking(x, y):
        record(cls, out, (x, y), (x if y._rg else None, y if x._rg else None))
    return out


def _is_turned(a: Any) -> bool:
    return a.__class__ is np.ndarray and a.flags.f_contiguous and not a.flags.c_contiguous


@op("mm", F="mm")
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    if modes.autocast is not None:
        return lowered(mm)(input, mat2)
    check_tensor("mm", input)
    a, b = input._a, mat2._a
    if a.ndim != 2:
        raise RuntimeError("self must be a matrix")
    if b.ndim != 2:
        raise RuntimeError("mat2 must be a matrix")
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and {b.shape[0]}x{b.shape[1]})"
        )
    _same_type("mm", input, mat2)
    out = _product(input, mat2)
    if tracking(input, mat2):
        record(
            MmBackward0, out, (input, mat2), (input if mat2._rg else None, mat2 if input._rg else None, _is_turned(b))
        )
    return out


@op("bmm", F="bmm")
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    if modes.autocast is not None:
        return lowered(bmm)(input, mat2)
    a, b = input._a, mat2._a
    if a.ndim != 3:
        raise RuntimeError("batch1 must be a 3D tensor")
    if b.ndim != 3:
        raise RuntimeError("batch2 must be a 3D tensor")
    _same_type("bmm", input, mat2)
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{a.shape[0]}, {a.shape[2]}] but got: "
            f"[{b.shape[0]}, {b.shape[1]}]."
        )
    return _recorded(BmmBackward0, _product(input, mat2), input, mat2)


@op("mv", F="mv")
def mv(input: Tensor, vec: Tensor) -> Tensor:
    a, b = input._a, vec._a
    if a.ndim != 2 or b.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {a.ndim}, {b.ndim}")
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(
            f"size mismatch, got input ({a.shape[0]}), mat ({a.shape[0]}x{a.shape[1]}), vec ({b.shape[0]})"
        )
    _same_type("mv", input, vec)
    return _recorded(MvBackward0, _product(input, vec), input, vec)


@op("dot", F="dot")
def dot(input: Tensor, tensor: Tensor) -> Tensor:
    a, b = input._a, tensor._a
    if a.ndim != 1 or b.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {a.ndim}D and {b.ndim}D tensors")
    _same_type("dot", input, tensor)
    if a.shape != b.shape:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor {brackets(a.shape)} and src {brackets(b.shape)} to have "
            "the same "
            f"number of elements, but got {a.size} and {b.size} elements respectively"
        )
    return _recorded(DotBackward0, finished(np.dot(bare(input), bare(tensor)), input.dtype), input, tensor)


register("vdot", dot)


@op("inner")
def inner(input: Tensor, other: Tensor) -> Tensor:
    if not input._a.ndim or not other._a.ndim:
        return input * other
    return tensordot(input, other, ([-1], [-1]))


@op("matmul", F="matmul")
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The product, by the rules of dimensions: vectors, matrices, batches of matrices."""
    if modes.autocast is not None:
        return lowered(matmul)(input, other)
    check_tensor("matmul", input)
    check_tensor("matmul", other, 2, "other")
    m, n = input._a.ndim, other._a.ndim
    if m == 2 and n == 2:
        return mm(input, other)
    if m == 1 and n == 1:
        return dot(input, other)
    if m == 2 and n == 1:
        return mv(input, other)
    if m == 1 and n == 2:
        return mm(input.unsqueeze(0), other).squeeze(0)
    if m == 0 or n == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {m}D and {n}D")
    if m >= 3 and n <= 2:  # fold the batch into the rows
        if n == 1:
            folded = mv(reshape(input, (-1, input._a.shape[-1])), other)
            return reshape(folded, input._a.shape[:-1])
        folded = mm(reshape(input, (math.prod(input._a.shape[:-1]), input._a.shape[-1])), other)
        return unsafe_view(folded, (*input._a.shape[:-1], other._a.shape[-1]))
    x = input if m > 1 else input.unsqueeze(0)
    y = other if n > 1 else other.unsqueeze(-1)
    a, b = x._a, y._a
    try:
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        from .promote import broadcast_error

        raise broadcast_error(a.shape[:-2], b.shape[:-2]) from None
    flat = math.prod(batch)
    x3 = reshape(expand(x, (*batch, *a.shape[-2:])), (flat, *a.shape[-2:]))
    y3 = reshape(expand(y, (*batch, *b.shape[-2:])), (flat, *b.shape[-2:]))
    out = unsafe_view(bmm(x3, y3), (*batch, a.shape[-2], b.shape[-1]))
    if m == 1:
        out = out.squeeze(-2)
    return out.squeeze(-1) if n == 1 else out


def _matmul_operator(x: Tensor, y: Any) -> Any:
    return matmul(x, y) if isinstance(y, Tensor) else NotImplemented


Tensor.__matmul__ = _matmul_operator
Tensor.__imatmul__ = _matmul_operator  # type: ignore[attr-defined]


def _addmm_rule(F: Any, node: Node, g: Any, x: Any, y: Any, beta: Any, alpha: Any, turned: bool = False) -> Any:
    """Z = beta B + alpha X Y."""
    gs = g if alpha == 1 else g * alpha
    bias = None if node.edges[0] is None else g if beta == 1 else g * beta
    return (bias, *_mm_rule(F, node, gs, x, y, turned))


AddmmBackward0 = node_class("AddmmBackward0", _addmm_rule, ("mat1", "mat2"))
BaddbmmBackward0 = node_class("BaddbmmBackward0", _addmm_rule, ("batch1", "batch2"))


def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta input + alpha mat1 @ mat2."""
    if modes.autocast is not None:
        return lowered(addmm)(input, mat1, mat2, beta=beta, alpha=alpha)
    a, b = mat1._a, mat2._a
    if a.ndim != 2:
        raise RuntimeError(f"mat1 must be a matrix, got {a.ndim}-D tensor")
    if b.ndim != 2:
        raise RuntimeError(f"mat2 must be a matrix, got {b.ndim}-D tensor")
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and {b.shape[0]}x{b.shape[1]})"
        )
    if mat1.dtype is not mat2.dtype:
        raise RuntimeError(
            f"mat1 and mat2 must have the same dtype, but got {mat1.dtype.legacy} and {mat2.dtype.legacy}"
        )
    if input.dtype is not mat1.dtype:
        raise RuntimeError(
            f"self and mat2 must have the same dtype, but got {input.dtype.legacy} and {mat2.dtype.legacy}"
        )
    _expandable_to(input, (a.shape[0], b.shape[1]))
    r = np.matmul(bare(mat1), bare(mat2))
    if alpha == 1 and beta == 1 and input.dtype.plain:
        r += input._a
    else:
        r = (r if alpha == 1 else r * alpha) + (0 if beta == 0 else bare(input) if beta == 1 else bare(input) * beta)
    out = finished(r, input.dtype)
    if tracking(input, mat1, mat2):
        saved = (mat1 if mat2._rg else None, mat2 if mat1._rg else None, beta, alpha, _is_turned(b))
        record(AddmmBackward0, out, (input, mat1, mat2), saved)
    return out


def _expandable_to(x: Tensor, shape: tuple[int, ...]) -> None:
    have = x._a.shape
    if len(have) > len(shape):
        raise RuntimeError(
            f"expand(torch.{x.dtype.legacy}Tensor{{{brackets(have)}}}, size={brackets(shape)}): the number of "
            "sizes provided "
            f"({len(shape)}) must be greater or equal to the number of dimensions in the tensor ({len(have)})"
        )
    lead = len(shape) - len(have)
    for i, n in enumerate(have):
        if n not in (1, shape[i + lead]):
            raise RuntimeError(
                f"The expanded size of the tensor ({shape[i + lead]}) must match the existing size ({n}) at "
                "non-singleton "
                f"dimension {i + lead}.  Target sizes: {brackets(shape)}.  Tensor sizes: {brackets(have)}"
            )


register("addmm", addmm, F="addmm")
in_place("addmm", addmm)


def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    r = np.matmul(bare(batch1), bare(batch2)) * alpha + (bare(input) * beta if beta != 0 else 0)
    _expandable_to(input, r.shape)
    out = finished(r.astype(bare(input).dtype), input.dtype)
    if tracking(input, batch1, batch2):
        record(
            BaddbmmBackward0,
            out,
            (input, batch1, batch2),
            (batch1 if batch2._rg else None, batch2 if batch1._rg else None, beta, alpha),
        )
    return out


register("baddbmm", baddbmm)
in_place("baddbmm", baddbmm)


def _composed(name: str, function: Any) -> None:
    function.__name__ = name
    register(name, function)
    in_place(name, function)


def _scaled(x: Tensor, s: Any) -> Tensor:
    return x if s == 1 else x * s


_composed(
    "addmv",
    lambda input, mat, vec, *, beta=1, alpha=1: (
        _scaled(mv(mat, vec), alpha) + (_scaled(input, beta) if beta != 0 else 0)
    ),
)
_composed(
    "addr",
    lambda input, vec1, vec2, *, beta=1, alpha=1: (
        _scaled(outer(vec1, vec2), alpha) + (_scaled(input, beta) if beta != 0 else 0)  # type: ignore[has-type]
    ),
)
_composed(
    "addbmm",
    lambda input, batch1, batch2, *, beta=1, alpha=1: (
        _scaled(bmm(batch1, batch2).sum(0), alpha) + (_scaled(input, beta) if beta != 0 else 0)
    ),
)


def _addcmul_rule(F: Any, node: Node, g: Any, x: Any, y: Any, value: Any) -> Any:
    e = node.edges
    return (
        g if e[0] is not None else None,
        g * (y * value) if e[1] is not None else None,
        g * (x * value) if e[2] is not None else None,
    )


def _addcdiv_rule(F: Any, node: Node, g: Any, x: Any, y: Any, value: Any) -> Any:
    e = node.edges
    return (
        g if e[0] is not None else None,
        g * (value / y) if e[1] is not None else None,
        -g * (value * x / (y * y)) if e[2] is not None else None,
    )


AddcmulBackward0 = node_class("AddcmulBackward0", _addcmul_rule, ("tensor1", "tensor2"))
AddcdivBackward0 = node_class("AddcdivBackward0", _addcdiv_rule, ("tensor1", "tensor2"))


def _fused(name: str, kernel: Any, cls: type[Node]) -> None:
    def apply(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
        from .promote import broadcast_shape, in_type, result_type

        d = result_type(input, tensor1, tensor2)
        if name == "addcdiv" and d.kind in "ib":
            raise RuntimeError(
                "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will "
                "perform a true "
                "division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value * "
                "torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / "
                "tensor2) for float inputs. The future addcdiv behavior is just the latter implementation: "
                "(input + value * "
                "tensor1 / tensor2), for all dtypes."
            )
        broadcast_shape(input._a.shape, tensor1._a.shape, tensor2._a.shape)
        a, x, y = (in_type(v, d) for v in (input, tensor1, tensor2))
        out = finished(a + kernel(d.compute.type(value), x, y), d)
        if tracking(input, tensor1, tensor2):
            record(cls, out, (input, tensor1, tensor2), (tensor1, tensor2, value))
        return out

    apply.__name__ = name
    register(name, apply)
    in_place(name, apply)


_fused("addcmul", lambda value, x, y: value * x * y, AddcmulBackward0)
_fused("addcdiv", lambda value, x, y: value * x / y, AddcdivBackward0)


@op("outer")
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    if input._a.ndim != 1:
        raise RuntimeError(f"outer: Expected 1-D argument self, but got {input._a.ndim}-D")
    if vec2._a.ndim != 1:
        raise RuntimeError(f"outer: Expected 1-D argument vec2, but got {vec2._a.ndim}-D")
    return reshape(input, (-1, 1)) * vec2


register("ger", outer)
LINALG["vecdot"] = lambda x, y, *, dim=-1: (x * y).sum(dim)


@op("tensordot", method=False)
def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    if isinstance(dims, int):
        left, right = list(range(a._a.ndim - dims, a._a.ndim)), list(range(dims))
    else:
        left, right = ([d] if isinstance(d, int) else list(d) for d in dims)
    left, right = [d % max(a._a.ndim, 1) for d in left], [d % max(b._a.ndim, 1) for d in right]
    for i, j in zip(left, right, strict=True):
        if a._a.shape[i] == 1 != b._a.shape[j]:
            b = b.sum(j, True)
        elif b._a.shape[j] == 1 != a._a.shape[i]:
            a = a.sum(i, True)
        elif a._a.shape[i] != b._a.shape[j]:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {a._a.shape[i]} in dim {i} and second "
                "has size "
                f"{b._a.shape[j]} in dim {j}"
            )
    rest_a = [d for d in range(a._a.ndim) if d not in left]
    rest_b = [d for d in range(b._a.ndim) if d not in right]
    n = math.prod(a._a.shape[d] for d in left)
    x = reshape(a.permute(*rest_a, *left) if a._a.ndim else a, (math.prod(a._a.shape[d] for d in rest_a), n))
    y = reshape(b.permute(*right, *rest_b) if b._a.ndim else b, (n, math.prod(b._a.shape[d] for d in rest_b)))
    return reshape(mm(x, y), (*(a._a.shape[d] for d in rest_a), *(b._a.shape[d] for d in rest_b)))


@op("einsum", method=False)
def einsum(equation: str, *operands: Any) -> Tensor:
    """Sums of products named by letters: each product of two operands is a batched matrix product."""
    from .einsum import contract

    many = list(operands[0]) if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else list(operands)
    return contract(equation, many)


@op("chain_matmul", method=False)
def chain_matmul(*matrices: Tensor) -> Tensor:
    out = matrices[0]
    for m in matrices[1:]:
        out = mm(out, m)
    return out


LINALG["multi_dot"] = lambda tensors: chain_matmul(*tensors)
LINALG["matmul"] = matmul
LINALG["vector_norm"] = vector_norm
LINALG["diagonal"] = lambda A, *, offset=0, dim1=-2, dim2=-1: A.diagonal(offset, dim1, dim2)


def linalg_norm(A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    if ord is None or (dim is None and A._a.ndim == 1) or isinstance(dim, int):
        return vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype)
    if ord == "fro":
        return vector_norm(A, 2, dim, keepdim, dtype=dtype)
    return matrix_norm(A, ord, dim or (-2, -1), keepdim, dtype=dtype)


def matrix_norm(
    A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    from .decompositions import svdvals

    if ord == "fro":
        return vector_norm(A, 2, tuple(dim), keepdim, dtype=dtype)
    if ord == "nuc" and tuple(dim) == (-2, -1) and not keepdim:
        return svdvals(A).sum(-1)
    if ord in (2, -2) and tuple(dim) == (-2, -1) and not keepdim:
        s = svdvals(A)
        return s.amax(-1) if ord == 2 else s.amin(-1)
    if ord in (1, -1, math.inf, -math.inf) and not keepdim:
        first = dim[0] if abs(ord) == 1 else dim[1]
        second = dim[1] if abs(ord) == 1 else dim[0]
        n = A._a.ndim
        first, second = first % n, second % n
        s = A.abs().sum(first, keepdim=True)
        s = s.amax(second, keepdim=True) if ord > 0 else s.amin(second, keepdim=True)
        return s.squeeze((first, second))
    not_covered(f"linalg.matrix_norm with ord={ord!r}, dim={dim}, keepdim={keepdim}")


LINALG.update(norm=linalg_norm, matrix_norm=matrix_norm)
