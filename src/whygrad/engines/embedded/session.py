"""One recorded run on this engine: `import torch` resolves to it from the start of the run to its end."""

from __future__ import annotations

import sys
from types import ModuleType

from whygrad.engines.pytorch.session import Session


class EmbeddedSession(Session):
    """Records one program on the embedded engine. Nothing of the engine is imported before the program imports it."""

    engine = "embedded"

    def start(self) -> None:
        from .install import Stand

        self._stand = Stand(self._arrived)
        self._watch_warnings()
        self._stand.enter()

    def detach(self) -> None:
        super().detach()
        self._stand.leave()

    def _arrived(self, torch: ModuleType) -> None:
        """The program's first `import torch`."""
        import torch._compile
        import torch.nn.utils
        import torch.optim.optimizer  # noqa: F401

        from .recorder import EmbeddedRecorder, EmbeddedWiring

        self.records, self.wires = EmbeddedRecorder, EmbeddedWiring  # type: ignore[misc]
        self._torch_imported(sys.modules["torch"])
