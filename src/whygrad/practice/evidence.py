"""What the checks of a problem may ask of the ledger: `evidence.resets("w")`, `evidence.history("w")`.

Every answer is plain: lines of the program, numbers, texts.
"""

from __future__ import annotations

from whygrad.ledger import Ledger
from whygrad.ledger.events import (
    BackwardBegan,
    BackwardEnded,
    DataChanged,
    GradChanged,
    GradModeChanged,
    GradReset,
    GradWritten,
    ModeChanged,
    ModuleCalled,
    Operation,
    OptimizerStepped,
    Raised,
    SiteId,
)
from whygrad.ledger.values import Value, as_float


class Evidence:
    """The answers that a recorded run gives about itself. `name` is a tensor's, as the program has it."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def _line(self, site: SiteId | None) -> int:
        found = self._ledger.site(site)
        return found.line if found is not None else 0

    def _is(self, tensor: int, name: str) -> bool:
        return not name or name in self._ledger.names(tensor)  # type: ignore[arg-type]

    def resets(self, name: str = "") -> list[int]:
        """The lines that reset a grad buffer, once for each time."""
        lines: list[int] = []
        for event in self._ledger:
            if isinstance(event, GradReset) and self._is(event.tensor, name):
                line = self._line(event.site)
                if name or not lines or lines[-1] != line:
                    lines.append(line)
        return lines

    def writes(self, name: str) -> list[int]:
        """The lines whose backward added to a grad buffer, in order."""
        return [
            self._line(event.site)
            for event in self._ledger
            if isinstance(event, GradWritten) and self._is(event.tensor, name)
        ]

    def history(self, name: str) -> list[object]:
        """What a grad buffer held after each thing that happened to it: a number, a list of numbers, or None."""
        found: list[object] = []
        for event in self._ledger:
            if isinstance(event, (GradWritten, GradChanged)) and self._is(event.tensor, name):
                found.append(_plain(event.after))
            elif isinstance(event, GradReset) and self._is(event.tensor, name):
                found.append(None if event.to.lower() == "none" else 0.0)
        return found

    def terms(self, name: str) -> list[int]:
        """How many contributions each backward brought to a grad buffer."""
        return [
            len(event.contributions)
            for event in self._ledger
            if isinstance(event, GradWritten) and self._is(event.tensor, name)
        ]

    def backwards(self) -> list[int]:
        """The lines of the backward passes, in order; one that failed is among them."""
        return [self._line(event.site) for event in self._ledger if isinstance(event, BackwardBegan)]

    def failed_backwards(self) -> list[int]:
        """The lines of the backward passes that raised."""
        return [self._line(event.site) for event in self._ledger if isinstance(event, BackwardEnded) and event.error]

    def steps(self) -> list[int]:
        """The lines of the optimizer's steps, in order."""
        return [self._line(event.site) for event in self._ledger if isinstance(event, OptimizerStepped)]

    def skipped(self) -> list[str]:
        """The names of the parameters that a step passed over, since their grad was None."""
        found = []
        for event in self._ledger:
            if isinstance(event, OptimizerStepped):
                found += [self._ledger.name(tensor) for tensor in event.skipped]
        return found

    def cuts(self) -> list[int]:
        """The lines that cut a tensor off its graph: detach(), item(), numpy() and the like."""
        return [self._line(event.site) for event in self._ledger if isinstance(event, Operation) and event.cut]

    def without_graph(self) -> list[int]:
        """The lines with an operation for which grad mode kept a node from being made."""
        return [
            self._line(event.site)
            for event in self._ledger
            if isinstance(event, Operation) and event.no_node in ("grad mode off", "inference mode")
        ]

    def nodes(self) -> list[int]:
        """The lines of the operations that made a node, in order."""
        return [
            self._line(event.site) for event in self._ledger if isinstance(event, Operation) and event.node is not None
        ]

    def data_writes(self, name: str = "") -> list[int]:
        """The lines that wrote a tensor's data in place."""
        return [
            self._line(event.site)
            for event in self._ledger
            if isinstance(event, DataChanged) and self._is(event.tensor, name)
        ]

    def mode_changes(self) -> list[int]:
        """The lines that called train() or eval()."""
        return [self._line(event.site) for event in self._ledger if isinstance(event, ModeChanged)]

    def grad_modes(self) -> list[int]:
        """The lines that entered a grad mode."""
        return [
            self._line(event.site) for event in self._ledger if isinstance(event, GradModeChanged) and event.entered
        ]

    def calls(self, name: str = "") -> list[tuple[int, bool, bool]]:
        """The outermost calls of modules: the line, whether the module was in train mode, and whether grad was on."""
        found = []
        for event in self._ledger:
            if isinstance(event, ModuleCalled) and event.depth == 0:
                module = self._ledger.module(event.module)
                if not name or (module is not None and name in (module.path, module.kind)):
                    found.append((self._line(event.site), event.training, event.grad_mode == "on"))
        return found

    def broken_contracts(self) -> list[int]:
        """The lines with a module call whose input the module could not take."""
        return sorted(
            {self._line(event.site) for event in self._ledger if isinstance(event, ModuleCalled) and event.error}
        )

    def raised(self) -> list[int]:
        """The lines that raised, caught or not."""
        return [self._line(event.site) for event in self._ledger if isinstance(event, Raised)]


def _plain(value: Value) -> object:
    if value.items is None:
        return value.norm
    items = [as_float(item) for item in value.items]
    return items[0] if value.shape == () else items
