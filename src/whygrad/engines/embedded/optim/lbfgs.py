"""L-BFGS."""

# mypy: no-warn-return-any
from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import not_covered
from .algorithms import _number, _store
from .optimizer import Optimizer


class LBFGS(Optimizer):
    """Quasi-Newton steps from the history of gradients; without a line search."""

    __module__ = "torch.optim.lbfgs"

    def __init__(
        self,
        params: Any,
        lr: Any = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        if line_search_fn is not None:
            not_covered(f"line_search_fn={line_search_fn!r} of LBFGS")
        super().__init__(
            params,
            {
                "lr": lr,
                "max_iter": max_iter,
                "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
                "tolerance_grad": tolerance_grad,
                "tolerance_change": tolerance_change,
                "history_size": history_size,
                "line_search_fn": line_search_fn,
            },
        )
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def _gradient(self) -> Any:
        return np.concatenate(
            [np.zeros(p._a.size, p.dtype.storage) if p._grad is None else np.ravel(p._grad._a) for p in self._params]
        )

    def _move(self, t: float, d: Any) -> None:
        at = 0
        for p in self._params:
            n = p._a.size
            _store(p, p._a + d[at : at + n].reshape(p._a.shape) * d.dtype.type(t))
            at += n

    def step(self, closure: Any = None) -> Any:
        if closure is None:
            raise TypeError("LBFGS.step() missing 1 required positional argument: 'closure'")
        group = self.param_groups[0]
        lr = _number(group["lr"])
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = self._closure(closure)
        loss = float(first)
        evals = 1
        state["func_evals"] += 1
        g = self._gradient()
        if np.abs(g).max() <= group["tolerance_grad"]:
            return first
        d, t, ys, ss, ro, diag, before = (
            state.get(k) for k in ("d", "t", "old_dirs", "old_stps", "ro", "H_diag", "prev_flat_grad")
        )
        previous = state.get("prev_loss", loss)
        n = 0
        while n < group["max_iter"]:
            n += 1
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                d, ys, ss, ro, diag = -g, [], [], [], 1.0
            else:
                y, s = g - before, d * d.dtype.type(t)
                product = float(np.dot(y, s))
                if product > 1e-10:
                    if len(ys) == group["history_size"]:
                        ys.pop(0), ss.pop(0), ro.pop(0)
                    ys.append(y), ss.append(s), ro.append(1.0 / product)
                    diag = product / float(np.dot(y, y))
                q = -g
                al = [0.0] * len(ys)
                for i in range(len(ys) - 1, -1, -1):
                    al[i] = float(np.dot(ss[i], q)) * ro[i]
                    q = q + ys[i] * g.dtype.type(-al[i])
                d = q * g.dtype.type(diag)
                for i in range(len(ys)):
                    be = float(np.dot(ys[i], d)) * ro[i]
                    d = d + ss[i] * g.dtype.type(al[i] - be)
            before = g.copy()
            previous = loss
            t = min(1.0, 1.0 / float(np.abs(g).sum())) * lr if state["n_iter"] == 1 else lr
            slope = float(np.dot(g, d))
            if slope > -group["tolerance_change"]:
                break
            self._move(t, d)
            if n != group["max_iter"]:
                loss = float(self._closure(closure))
                g = self._gradient()
                evals += 1
                state["func_evals"] += 1
            if n == group["max_iter"] or evals >= group["max_eval"]:
                break
            if (
                np.abs(g).max() <= group["tolerance_grad"]
                or np.abs(d * d.dtype.type(t)).max() <= group["tolerance_change"]
            ):
                break
            if abs(loss - previous) < group["tolerance_change"]:
                break
        state.update(d=d, t=t, old_dirs=ys, old_stps=ss, ro=ro, H_diag=diag, prev_flat_grad=before, prev_loss=previous)
        return first
