"""Anomaly mode: remember where each node was made, and refuse NaN in backward."""

from __future__ import annotations

from typing import Any

from .modes import modes
from .warn import warn

WARNING = (
    "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging."
)


class detect_anomaly:
    """Anomaly mode inside the block."""

    __module__ = "torch.autograd.anomaly_mode"

    def __init__(self, check_nan: bool = True) -> None:
        self.before = modes.anomaly, modes.anomaly_check_nan
        self.check_nan = check_nan
        warn(WARNING)

    def __enter__(self) -> None:
        modes.anomaly, modes.anomaly_check_nan = True, self.check_nan

    def __exit__(self, *exc: Any) -> None:
        modes.anomaly, modes.anomaly_check_nan = self.before


class set_detect_anomaly:
    """Anomaly mode from here on, or inside the block."""

    __module__ = "torch.autograd.anomaly_mode"

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.before = modes.anomaly, modes.anomaly_check_nan
        modes.anomaly, modes.anomaly_check_nan = mode, check_nan

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: Any) -> None:
        modes.anomaly, modes.anomaly_check_nan = self.before
