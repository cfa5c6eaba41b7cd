"""`torch.amp.autocast_mode`."""

from ...autocast import autocast

__all__ = ["autocast"]
