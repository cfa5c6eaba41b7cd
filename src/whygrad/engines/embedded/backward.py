"""`backward()` and `autograd.grad`: what is asked for, checked; then `sweep` or `flow` sends the gradients.

Gradients flow from the roots to the leaves, from the node made last to the one made first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import tensor as _tensor
from .errors import not_covered
from .flow import Flow
from .modes import modes
from .sweep import count, sweep
from .tensor import Tensor, wrap
from .warn import warn


def backward(tensors: Any, gradients: Any, retain_graph: bool | None, create_graph: bool, inputs: Any = None) -> None:
    """Accumulate into the leaves' `.grad` (`torch.autograd.backward`)."""
    if inputs is not None:
        inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
        if len(inputs) == 0:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    tensors = (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)
    gradients = root_gradients(tensors, as_gradients(gradients, len(tensors)))
    if retain_graph is None:
        retain_graph = create_graph
    if create_graph:
        warn(
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its "
            "gradient which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid "
            "this. If you have to use this function, make sure to reset the .grad fields of your parameters to None "
            "after use to break the cycle and avoid the leak."
        )
    for t in inputs or ():
        if t._edge is not None:
            t.retain_grad()
    run(tensors, gradients, retain_graph, create_graph, inputs, accumulate=True)


_tensor.run_backward = backward


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """Return gradients without touching `.grad` (`torch.autograd.grad`)."""
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    if allow_unused is None:
        allow_unused = materialize_grads
    outputs = (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)
    keys = tuple(inputs.keys()) if type(inputs) is dict else None
    wanted = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs.values()) if keys else tuple(inputs)
    if len(wanted) == 0:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if not only_inputs:
        warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for "
            "other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
        )
    if is_grads_batched:
        not_covered("is_grads_batched=True of torch.autograd.grad")
    gradients = root_gradients(outputs, as_gradients(grad_outputs, len(outputs)))
    if retain_graph is None:
        retain_graph = create_graph
    results = run(outputs, gradients, retain_graph, create_graph, wanted, False, allow_unused)
    if materialize_grads:
        results = tuple(
            wrap(np.zeros(t._a.shape, t.dtype.storage)[()], t.dtype).requires_grad_(create_graph) if r is None else r
            for r, t in zip(results, wanted, strict=True)
        )
    return dict(zip(keys, results, strict=True)) if keys else results


def as_gradients(gradients: Any, count: int) -> tuple[Any, ...]:
    if gradients is None:
        return (None,) * count
    if isinstance(gradients, Tensor):
        return (gradients,)
    return tuple(gradients)


def root_gradients(outputs: tuple[Any, ...], gradients: tuple[Any, ...]) -> tuple[Tensor | None, ...]:
    """The gradients to start from: those given, or 1 for a scalar."""
    made: list[Tensor | None] = []
    for index, (out, g) in enumerate(zip(outputs, gradients, strict=False)):
        if g is None:
            if not out._rg:
                made.append(None)
                continue
            if out._a.size != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            if not out.dtype.is_floating_point:
                raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {out.dtype}")
            made.append(
                wrap(np.ones(out._a.shape, out.dtype.storage) if out._a.ndim else out.dtype.scalar(1), out.dtype)
            )
        elif not isinstance(g, Tensor):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
        else:
            if g._a.shape != out._a.shape:
                raise RuntimeError(
                    f"Mismatch in shape: grad_output[{index}] has a shape of {g.shape} and output[{index}] has a shape "
                    f"of {out.shape}."
                )
            if out.dtype.is_complex != g.dtype.is_complex:
                raise RuntimeError(
                    "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in "
                    f"dtype: grad_output[{index}] has a dtype of {g.dtype} and output[{index}] has a dtype of "
                    f"{out.dtype}."
                )
            made.append(g)
    return tuple(made)


def run(
    roots: tuple[Tensor, ...],
    gradients: tuple[Any, ...],
    keep: bool,
    create: bool,
    inputs: tuple[Tensor, ...] | None,
    accumulate: bool,
    allow_unused: bool = True,
) -> tuple[Any, ...]:
    """Send the gradients from the roots through the graph; the gradients of `inputs` if they are only asked for."""
    edges = []
    for index, (t, g) in enumerate(zip(roots, gradients, strict=False)):
        if not t._rg:
            raise RuntimeError(f"element {index} of tensors does not require grad and does not have a grad_fn")
        if g is None:
            raise RuntimeError(
                f"element {index} of gradients tuple is None, but the corresponding Tensor requires grad"
            )
        edges.append(t if t._edge is None else t._edge)
    for t in inputs or ():
        if not t._rg:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
    before = modes.grad
    modes.grad = create
    try:
        waiting, watched = count(edges)
        if not (watched or create or inputs is not None or modes.anomaly):
            sweep(
                edges,
                [g._a if g.dtype is t.dtype else _as(g, t) for t, g in zip(roots, gradients, strict=False)],
                waiting,
                keep,
            )
            return ()
        flow = Flow(edges, waiting, keep, create, inputs, accumulate)
        flow.start(edges, gradients)
    finally:
        modes.grad = before
    results = flow.captured_in_order()
    for index, result in enumerate(results):
        if result is None and not allow_unused:
            raise RuntimeError(
                f"The differentiated Tensor at index {index} appears to not have been used in the graph. Set "
                "allow_unused=True if this is the desired behavior."
            )
    return results


def _as(g: Tensor, root: Tensor) -> Any:
    from . import kernels

    return kernels.cast(g._a, root.dtype)


__all__ = ["backward", "grad", "run"]
