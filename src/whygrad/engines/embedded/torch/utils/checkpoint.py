"""`torch.utils.checkpoint`: forget what a function saved, and run it again when its gradients are needed."""

from __future__ import annotations

from typing import Any

from ... import backward as _backward
from ...errors import not_covered
from ...function import Function
from ...modes import enable_grad, no_grad
from ...random import get_rng_state, set_rng_state
from ...tensor import Tensor
from ...warn import warn


class _Rerun(Function):
    """Forward without a graph; backward runs the function again with one."""

    @staticmethod
    def forward(ctx: Any, function: Any, kwargs: Any, preserve: bool, keep: Any, *args: Any) -> Any:
        ctx.call = function, kwargs, args
        ctx.rng = get_rng_state() if preserve else None
        return function(*args, **kwargs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        function, kwargs, args = ctx.call
        fresh = [
            a.detach().requires_grad_(a.requires_grad) if isinstance(a, Tensor) and a.is_floating_point() else a
            for a in args
        ]
        now = get_rng_state()
        if ctx.rng is not None:
            set_rng_state(ctx.rng)
        with enable_grad():
            outs = function(*fresh, **kwargs)
        set_rng_state(now)
        many = (outs,) if isinstance(outs, Tensor) else tuple(outs)
        pairs = [(o, g) for o, g in zip(many, grads, strict=True) if isinstance(o, Tensor) and o.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        _backward.backward([o for o, _ in pairs], [g for _, g in pairs], None, False)
        return (None, None, None, None, *(a.grad if isinstance(a, Tensor) else None for a in fresh))


def checkpoint(
    function: Any,
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Any = None,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Call `function`, keeping only its inputs; run it again in backward."""
    preserve = kwargs.pop("preserve_rng_state", True)
    if context_fn is not None or debug:
        not_covered("context_fn and debug of checkpoint")
    if use_reentrant is None:
        warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in "
            "PyTorch 2.9, calling "
            "checkpoint without use_reentrant will raise an exception. use_reentrant=False is recommended, but "
            "if you need to "
            "preserve the current default behavior, you can pass use_reentrant=True. Refer to docs for more "
            "details on the "
            "differences between the two variants."
        )
        use_reentrant = True
    if not use_reentrant:
        return _without_reentry(function, kwargs, preserve, args)
    if not any(isinstance(a, Tensor) and a.requires_grad for a in args):
        warn("None of the inputs have requires_grad=True. Gradients will be None")
    return _Rerun.apply(function, kwargs, preserve, None, *args)


def _without_reentry(function: Any, kwargs: Any, preserve: bool, args: tuple[Any, ...]) -> Any:
    """Parameters that the function closes over get gradients too: a leaf that requires grad stands in for them."""
    from ...ops.factories import empty

    if not any(isinstance(a, Tensor) and a.requires_grad for a in args):
        with no_grad():
            anchor = empty(0)
        anchor.requires_grad_()
    else:
        anchor = None
    return _Rerun.apply(function, kwargs, preserve, anchor, *args)


def checkpoint_sequential(*args: Any, **kwargs: Any) -> Any:
    not_covered("checkpoint_sequential")
