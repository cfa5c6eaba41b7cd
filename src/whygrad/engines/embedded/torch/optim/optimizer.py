"""`torch.optim.optimizer`."""

from ...graph import RemovableHandle
from ...optim.optimizer import GlobalHooks, Optimizer, required


def register_optimizer_step_pre_hook(hook):  # type: ignore[no-untyped-def]
    return RemovableHandle(GlobalHooks.before, hook)


def register_optimizer_step_post_hook(hook):  # type: ignore[no-untyped-def]
    return RemovableHandle(GlobalHooks.after, hook)


__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook", "required"]
