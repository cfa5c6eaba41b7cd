"""`torch.linalg`: inverse, solve, determinant, Cholesky, SVD, eigenvalues, QR and what stands on them."""

# mypy: no-warn-return-any
from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import differentiable, dtypes
from ..graph import Node, node_class
from ..tensor import Tensor
from .define import (
    SavedOutput,
    finished,
    not_covered,
    op,
    record,
    record_several,
    register,
    tracking,
)
from .extrema import named_result
from .linalg import LINALG, matmul
from .norms import norm, vector_norm
from .shape import expand, reshape, transpose


def _square(name: str, x: Tensor) -> None:
    if x._a.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    if x._a.shape[-1] != x._a.shape[-2]:
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are {x._a.shape[-2]} by {x._a.shape[-1]} matrices"
        )


def _lapack(name: str, function: Any, *args: Any) -> Any:
    try:
        return function(*args)
    except np.linalg.LinAlgError as error:
        raise LinAlgError(f"{name}: {_LAPACK_TEXT[name]}") from error


class LinAlgError(RuntimeError):
    """A decomposition that failed for these numbers."""

    __module__ = "torch._C"
    __qualname__ = "_LinAlgError"


LinAlgError.__name__ = "_LinAlgError"
_LAPACK_TEXT = {
    "linalg.svd": "The algorithm failed to converge because the input matrix contained non-finite values.",
    "linalg.eigh": "The algorithm failed to converge because the input matrix is ill-conditioned or has too many "
    "repeated eigenvalues.",
}


def _mt(F: Any, x: Any) -> Any:
    return F.transpose(x, -2, -1)


def _inv_rule(F: Any, node: Node, g: Any, r: Any) -> Any:
    """d(A^-1) = -A^-1 dA A^-1."""
    rt = _mt(F, r)
    return -F.matmul(F.matmul(rt, g), rt)


LinalgInvExBackward0 = node_class("LinalgInvExBackward0", _inv_rule, ("inverse",))


def inv(A: Tensor) -> Tensor:
    _square("linalg.inv", A)
    out = finished(_inverse(A), A.dtype)
    if tracking(A):
        record(LinalgInvExBackward0, out, (A,), (SavedOutput(out),))
    return out


def _inverse(x: Tensor) -> Any:
    a = x._a
    try:
        r = np.linalg.inv(a)
    except np.linalg.LinAlgError:
        n = _singular_at(a)
        raise LinAlgError(
            f"linalg.inv: The diagonal element {n} is zero, the inversion could not be completed because the "
            "input matrix is "
            "singular."
        ) from None
    return r


def _singular_at(a: Any) -> int:
    """The pivot that vanishes (elimination with row exchanges, as LAPACK does it)."""
    m = np.array(a if a.ndim == 2 else a.reshape(-1, *a.shape[-2:])[0], np.float64)
    n = m.shape[0]
    for k in range(n):
        p = k + int(np.argmax(np.abs(m[k:, k])))
        if m[p, k] == 0:
            return k + 1
        m[[k, p]] = m[[p, k]]
        m[k + 1 :] -= np.outer(m[k + 1 :, k] / m[k, k], m[k])
    return n


register("inverse", inv, F="inv")
LINALG["inv"] = inv


def _solve_rule(F: Any, node: Node, g: Any, a: Any, x: Any) -> Any:
    """A X = B:  dB = A^-T G, dA = -dB X^T."""
    vector = len(x.shape) == len(a.shape) - 1
    gv, xv = (F.unsqueeze(g, -1), F.unsqueeze(x, -1)) if vector else (g, x)
    gb = F.solve(_mt(F, a), gv)
    return (
        None if node.edges[0] is None else -F.matmul(gb, _mt(F, xv)),
        None if node.edges[1] is None else F.squeeze(gb, -1) if vector else gb,
    )


LinalgSolveExBackward0 = node_class("LinalgSolveExBackward0", _solve_rule, ("A", "result"))


def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    _square("linalg.solve", A)
    if not left:
        return _mt(differentiable, solve(_mt(differentiable, A), _mt(differentiable, B)))
    vector = B._a.ndim == 1 or (A._a.ndim - 1 == B._a.ndim and B._a.shape == A._a.shape[:-1])
    b = B._a[..., None] if vector else B._a
    try:
        r = np.linalg.solve(A._a, b)
    except np.linalg.LinAlgError:
        raise LinAlgError("torch.linalg.solve: The solver failed because the input matrix is singular.") from None
    except ValueError:
        raise RuntimeError(
            f"linalg.solve: Incompatible shapes of A and B for the equation AX = B "
            f"({A._a.shape[-2]}x{A._a.shape[-1]} and {b.shape[-2]}x{b.shape[-1]})"
        ) from None
    out = finished(r[..., 0] if vector else r, A.dtype)
    if tracking(A, B):
        record(LinalgSolveExBackward0, out, (A, B), (A, SavedOutput(out)))
    return out


differentiable.solve = solve
LINALG["solve"] = solve


def _det_rule(F: Any, node: Node, g: Any, a: Any, r: Any) -> Any:
    """d det A = det A tr(A^-1 dA)."""
    g = F.unsqueeze(F.unsqueeze(g * r, -1), -1)
    return g * _mt(F, F.inv(a))


LinalgDetBackward0 = node_class("LinalgDetBackward0", _det_rule, ("A", "result"))


def det(A: Tensor) -> Tensor:
    _square("linalg.det", A)
    out = finished(np.linalg.det(A._a), A.dtype)
    if tracking(A):
        if (out._a == 0).any():
            not_covered("the gradient of the determinant of a singular matrix")
        record(LinalgDetBackward0, out, (A,), (A, SavedOutput(out)))
    return out


register("det", det)
LINALG["det"] = det


def _logdet_rule(F: Any, node: Node, g: Any, a: Any) -> Any:
    g = g[1] if isinstance(g, list) else g
    return F.unsqueeze(F.unsqueeze(g, -1), -1) * _mt(F, F.inv(a))


LinalgSlogdetBackward0 = node_class("LinalgSlogdetBackward0", _logdet_rule, ("A",))
_SLOGDET = named_result("slogdet", ("sign", "logabsdet"))


def slogdet(A: Tensor) -> Any:
    _square("linalg.slogdet", A)
    sign, log = np.linalg.slogdet(A._a)
    outs = finished(sign, A.dtype), finished(log, A.dtype)
    if tracking(A):
        record_several(LinalgSlogdetBackward0, outs, (A,), (A,))
    return _SLOGDET(*outs)


def logdet(A: Tensor) -> Tensor:
    sign, log = slogdet(A)
    return differentiable.where(sign < 0, math.nan, log)


register("slogdet", slogdet)
register("logdet", logdet)
LINALG["slogdet"] = slogdet


def _cholesky_rule(F: Any, node: Node, g: Any, low: Any) -> Any:
    """dA = L^-T phi(L^T G) L^-1, symmetrised (Murray 2016)."""
    p = F.tril(F.matmul(_mt(F, low), g))
    half = F.constant(np.tril(np.ones(tuple(low.shape)[-2:])) - 0.5 * np.eye(low.shape[-1]), g)
    p = p * half
    inverse = F.inv(low)
    s = F.matmul(F.matmul(_mt(F, inverse), p), inverse)
    return (s + _mt(F, s)) * 0.5


LinalgCholeskyExBackward0 = node_class("LinalgCholeskyExBackward0", _cholesky_rule, ("L",))


def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    _square("linalg.cholesky", A)
    try:
        r = np.linalg.cholesky(A._a)
    except np.linalg.LinAlgError:
        m = next(k for k in range(1, A._a.shape[-1] + 1) if np.linalg.eigvalsh(A._a[..., :k, :k]).min() <= 0)
        raise LinAlgError(
            "linalg.cholesky: The factorization could not be completed because the input is not positive-definite (the "
            f"leading minor of order {m} is not positive-definite)."
        ) from None
    out = finished(r, A.dtype)
    if tracking(A):
        record(LinalgCholeskyExBackward0, out, (A,), (SavedOutput(out),))
    return _mt(differentiable, out) if upper else out


register("cholesky", lambda input, upper=False: cholesky(input, upper=upper))
LINALG["cholesky"] = cholesky


def _svd_rule(F: Any, node: Node, g: Any, u: Any, s: Any, vh: Any) -> Any:
    """Through the skew parts of U^T dU and V^T dV; 1/(s_i^2 - s_j^2) is what explodes for equal singular values."""
    gu, gs, gvh = g
    m, n = u.shape[-2], vh.shape[-1]
    k = s.shape[-1]
    if m != k and vh.shape[-2] != k:
        raise RuntimeError("svd_backward: full_matrices=True is not differentiable")
    inner = None
    if gu is not None or gvh is not None:
        s2 = s * s
        e = F.unsqueeze(s2, -2) - F.unsqueeze(s2, -1)
        e = e + F.constant(np.eye(k), s)  # the diagonal is not used
        total = None
        if gu is not None:
            skew = F.matmul(_mt(F, u), gu)
            skew = skew - _mt(F, skew)
            total = (skew / e) * F.unsqueeze(s, -2)
        if gvh is not None:
            skew = F.matmul(vh, _mt(F, gvh))
            skew = skew - _mt(F, skew)
            part = F.unsqueeze(s, -1) * (skew / e)
            total = part if total is None else total + part
        inner = total - total * F.constant(np.eye(k), s)
    if gs is not None:
        diagonal = F.unsqueeze(gs, -1) * F.constant(np.eye(k), s)
        inner = diagonal if inner is None else inner + diagonal
    out = F.matmul(F.matmul(u, inner), vh)
    if m > k and gu is not None:
        rest = gu - F.matmul(u, F.matmul(_mt(F, u), gu))
        out = out + F.matmul(rest / F.unsqueeze(s, -2), vh)
    if n > k and gvh is not None:
        v = _mt(F, vh)
        gv = _mt(F, gvh)
        rest = gv - F.matmul(v, F.matmul(vh, gv))
        out = out + F.matmul(u, _mt(F, rest / F.unsqueeze(s, -2)))
    return out


LinalgSvdBackward0 = node_class("LinalgSvdBackward0", _svd_rule, ("U", "S", "Vh"))
_SVD = named_result("linalg_svd", ("U", "S", "Vh"))


def svd(A: Tensor, full_matrices: bool = True, *, driver: Any = None) -> Any:
    if A._a.ndim < 2:
        raise RuntimeError("linalg.svd: The input tensor A must have at least 2 dimensions.")
    u, s, vh = _lapack("linalg.svd", np.linalg.svd, A._a, full_matrices)
    outs = finished(u, A.dtype), finished(s, A.dtype), finished(vh, A.dtype)
    if tracking(A):
        record_several(LinalgSvdBackward0, outs, (A,), tuple(SavedOutput(o, i) for i, o in enumerate(outs)))
    return _SVD(*outs)


def svdvals(A: Tensor, *, driver: Any = None) -> Tensor:
    return svd(A, False)[1]


LINALG.update(svd=svd, svdvals=svdvals)
_TORCH_SVD = named_result("svd", ("U", "S", "V"))


@op("svd")
def torch_svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> Any:
    u, s, vh = svd(input, not some)
    return _TORCH_SVD(u, s, transpose(vh, -2, -1))


def _eigh_rule(F: Any, node: Node, g: Any, w: Any, v: Any) -> Any:
    gw, gv = g
    k = w.shape[-1]
    inner = None
    if gv is not None:
        e = F.unsqueeze(w, -2) - F.unsqueeze(w, -1) + F.constant(np.eye(k), w)
        vg = F.matmul(_mt(F, v), gv)
        inner = vg / e
        inner = inner - inner * F.constant(np.eye(k), w)
    if gw is not None:
        diagonal = F.unsqueeze(gw, -1) * F.constant(np.eye(k), w)
        inner = diagonal if inner is None else inner + diagonal
    return F.matmul(F.matmul(v, inner), _mt(F, v))


LinalgEighBackward0 = node_class("LinalgEighBackward0", _eigh_rule, ("eigenvalues", "eigenvectors"))
_EIGH = named_result("linalg_eigh", ("eigenvalues", "eigenvectors"))


def eigh(A: Tensor, UPLO: str = "L") -> Any:
    _square("linalg.eigh", A)
    w, v = _lapack("linalg.eigh", np.linalg.eigh, A._a, UPLO)
    outs = finished(w, A.dtype), finished(v, A.dtype)
    if tracking(A):
        record_several(LinalgEighBackward0, outs, (A,), tuple(SavedOutput(o, i) for i, o in enumerate(outs)))
    return _EIGH(*outs)


LINALG.update(eigh=eigh, eigvalsh=lambda A, UPLO="L": eigh(A, UPLO)[0])
_QR = named_result("linalg_qr", ("Q", "R"))


def _qr_rule(F: Any, node: Node, g: Any, q: Any, r: Any) -> Any:
    """A = Q R with R square (Walter and Lehmann 2018)."""
    gq, gr = g
    m = None
    if gr is not None:
        m = F.matmul(r, _mt(F, gr))
    if gq is not None:
        part = -F.matmul(_mt(F, gq), q)
        m = part if m is None else m + part
    low = F.tril(m)
    sym = low + _mt(F, low) - m * F.constant(np.eye(r.shape[-1]), r)
    total = F.matmul(q, sym)
    if gq is not None:
        total = gq + total
    return F.matmul(total, _mt(F, F.inv(r)))


LinalgQrBackward0 = node_class("LinalgQrBackward0", _qr_rule, ("Q", "R"))


def qr(A: Tensor, mode: str = "reduced") -> Any:
    if mode not in ("reduced", "complete"):
        not_covered(f"linalg.qr with mode={mode!r}")
    q, r = np.linalg.qr(A._a, mode)  # type: ignore[call-overload]
    outs = finished(q, A.dtype), finished(r, A.dtype)
    if tracking(A):
        if r.shape[-1] != r.shape[-2] or mode != "reduced":
            not_covered("the gradient of linalg.qr of a wide matrix")
        record_several(LinalgQrBackward0, outs, (A,), (SavedOutput(outs[0], 0), SavedOutput(outs[1], 1)))
    return _QR(*outs)


LINALG["qr"] = qr


def matrix_power(A: Tensor, n: int) -> Tensor:
    if n < 0:
        return matrix_power(inv(A), -n)
    from .factories import eye

    if n == 0:
        return expand(eye(A._a.shape[-1], dtype=A.dtype), A._a.shape).clone()
    out: Tensor | None = None
    square = A
    while n:
        if n & 1:
            out = square if out is None else matmul(out, square)
        n >>= 1
        if n:
            square = matmul(square, square)
    assert out is not None
    return out.clone() if out is A else out


register("matrix_power", matrix_power)
LINALG["matrix_power"] = matrix_power


def pinv(A: Tensor, rcond: float = 1e-15, **kwargs: Any) -> Tensor:
    if tracking(A) or kwargs or rcond != 1e-15:
        not_covered("the gradient and the tolerances of pinv")
    return finished(np.linalg.pinv(A._a, A._a.dtype.type(max(A._a.shape[-2:]) * np.finfo(A._a.dtype).eps)), A.dtype)


register("pinverse", pinv)
LINALG["pinv"] = pinv


def matrix_rank(A: Tensor, tol: Any = None, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Tensor:
    if hermitian or any(v is not None for v in (tol, atol, rtol)):
        not_covered("the tolerances of linalg.matrix_rank")
    return finished(np.asarray(np.linalg.matrix_rank(A._a)).astype(np.int64)[()], dtypes.int64)


LINALG["matrix_rank"] = matrix_rank
LINALG["cond"] = lambda A, p=None: (
    finished(np.asarray(np.linalg.cond(A._a, p)).astype(A._a.dtype)[()], A.dtype)
    if not tracking(A)
    else not_covered("the gradient of linalg.cond")
)
_LSTSQ = named_result("linalg_lstsq", ("solution", "residuals", "rank", "singular_values"))


def lstsq(A: Tensor, B: Tensor, rcond: Any = None, *, driver: Any = None) -> Any:
    if tracking(A, B) or A._a.ndim != 2 or B._a.ndim != 2:
        not_covered("linalg.lstsq with gradients, vectors or batches")
    m, n = A._a.shape
    solution, residuals, rank, _ = np.linalg.lstsq(A._a, B._a, rcond=rcond)
    empty = np.zeros((0,), A._a.dtype)
    return _LSTSQ(
        finished(solution, A.dtype),
        finished(residuals if m > n else empty, A.dtype),
        finished(np.int64(rank), dtypes.int64),
        finished(empty, A.dtype),
    )


LINALG["lstsq"] = lstsq


def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    d = dim % max(input._a.ndim, 1)
    a, b = input.unbind(d), other.unbind(d)
    if len(a) != 3 or len(b) != 3:
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {len(a)} and {len(b)}")
    return differentiable.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]], d)


LINALG["cross"] = cross


def _torch_cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    if dim is None:
        dim = next(i for i, n in enumerate(input._a.shape) if n == 3)
    return cross(input, other, dim=dim)


register("cross", _torch_cross)


@op("kron")
def kron(input: Tensor, other: Tensor) -> Tensor:
    n = max(input._a.ndim, other._a.ndim)
    a = reshape(input, (1,) * (n - input._a.ndim) + input._a.shape)
    b = reshape(other, (1,) * (n - other._a.ndim) + other._a.shape)
    x = reshape(a, tuple(v for s in a._a.shape for v in (s, 1)))
    y = reshape(b, tuple(v for s in b._a.shape for v in (1, s)))
    return reshape(x * y, tuple(m * k for m, k in zip(a._a.shape, b._a.shape, strict=True)))


@op("dist")
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    return norm(input - other, p)


@op("cdist", method=False)
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: Any = None) -> Tensor:
    return vector_norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p, -1)
