"""The parts of a recording of one program, and the way to tell them something without the program noticing.

Whatever fails in the telling becomes a `recording lost` event; the program never sees it.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

from whygrad.engines.book import Book
from whygrad.engines.pytorch.aims import BackwardThing
from whygrad.engines.pytorch.backward import Backwards
from whygrad.engines.pytorch.depth import Depth
from whygrad.engines.pytorch.fold import Fold
from whygrad.engines.pytorch.grads import Grads
from whygrad.engines.pytorch.graph import Graph
from whygrad.engines.pytorch.modules import Modules
from whygrad.engines.pytorch.notfinite import NotFiniteValues
from whygrad.engines.pytorch.operations import Operations
from whygrad.engines.pytorch.optimizers import Optimizers
from whygrad.engines.pytorch.tensors import Tensors
from whygrad.engines.pytorch.values import Reader
from whygrad.engines.pytorch.writes import Writes
from whygrad.execute.sites import SiteTable
from whygrad.ledger.events import Noted


class _Busy(threading.local):
    """Whether this thread is telling something; the mode changes that are running on it; the modules that it called
    since its last backward, one bit each."""

    def __init__(self) -> None:
        self.on = False
        self.modes: list[tuple[Any, str, dict[int, bool]]] = []
        self.called = 0


class Parts:
    """Everything that watches one program, once torch is imported. `reads` and `walks` know the engine's insides."""

    reads: type[Reader] = Reader
    walks: type[Graph] = Graph

    def __init__(self, torch: Any, book: Book, table: SiteTable, policy: str) -> None:
        self.torch = torch
        self.book = book
        self.table = table
        self.reader = self.reads(torch)
        self.tensors = Tensors(torch, book, self.reader)
        self.graph = self.walks(torch, book, self.tensors)
        self.grads = Grads(book, self.reader, self.tensors)
        self.writes = Writes(book, self.reader, self.tensors, self.grads)
        self.backwards = Backwards(torch, book, self.reader, self.tensors, self.graph, self.grads, self.writes)
        self.not_finite = NotFiniteValues(book, self.reader, self.tensors, self.graph)
        self.modules = Modules(torch, book, self.reader, self.tensors, self.graph, self.writes)
        self.operations = Operations(
            torch,
            book,
            self.reader,
            self.tensors,
            self.graph,
            self.grads,
            self.writes,
            table,
            self.outer_site,
            policy == "auto",
        )
        self.optimizers = Optimizers(torch, book, self.reader, self.tensors, self.grads, self.writes)
        self.fold = Fold(torch, book, self.tensors, self.grads, self.name_bound)
        self.depth = Depth(policy, book, self.fold, self.switched, self.quietly)
        self.compiled = False
        self._is_noted = False
        self.on_switch: list[Callable[[bool], None]] = []
        self._tensor = torch.Tensor
        self._plain = frozenset({torch.Tensor, torch.nn.Parameter})
        self._module = torch.nn.Module
        self._optimizer = torch.optim.Optimizer
        self._unseen = torch._C.DisableTorchFunction
        self._grad_enabled = torch.is_grad_enabled
        self._transform = torch._C._functorch.peek_interpreter_stack
        self._tracing = torch._C._get_tracing_state
        self._busy = _Busy()
        self._bits: dict[object, int] = {}
        self._things: dict[tuple[int | None, int | None, int, type], BackwardThing] = {}
        self._bound: dict[int, weakref.ref[Any]] = {}

    # --- safety -----------------------------------------------------------------------------------

    def tell(self, what: str, action: Callable[..., None], *arguments: Any) -> None:
        """Run `action` so that neither its failure nor its own operations reach the program."""
        busy = self._busy
        if busy.on or not self.book.is_open:
            return
        if self._transform() is not None or self._tracing() is not None:
            self._note_unseen()
            return
        busy.on = True
        try:
            with self._unseen():
                action(*arguments)
        except Exception as error:
            self.book.lost(what, error)
        finally:
            busy.on = False

    def quietly(self, what: str, action: Callable[..., None], *arguments: Any) -> None:
        """As `tell`, also while something is being told."""
        if self._busy.on:
            action(*arguments)
        else:
            self.tell(what, action, *arguments)

    def _note_unseen(self) -> None:
        """Say once that something runs that nobody can look into."""
        if not self._is_noted:
            self._is_noted = True
            what = "torch.func (grad, vmap, jvp, ...)" if self._transform() is not None else "torch.jit.trace"
            self.book.write(
                Noted, self.user_site(), text=f"what runs inside {what} is not recorded, only what comes out"
            )

    def name_bound(self) -> None:
        """Tell of what got a name while nobody looked closely."""

    def user_site(self) -> int | None:
        """What the user's own code is executing."""
        files = self.table.files
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename in files:
                return self.table.running(frame)
            frame = frame.f_back
        return None

    def outer_site(self) -> int | None:
        """What the user's code around the innermost function of the user's is executing."""
        return self._sites()[1]

    def _sites(self) -> tuple[int | None, int | None]:
        """What the user's code is executing, and what its code around that function is."""
        files = self.table.files
        frame: FrameType | None = sys._getframe(2)
        site = None
        while frame is not None:
            if frame.f_code.co_filename in files:
                if site is not None:
                    return site, self.table.running(frame)
                site = self.table.running(frame)
            frame = frame.f_back
        return site, None

    def switched(self, full: bool) -> None:
        """Recording went to full or light depth."""
        for told in self.on_switch:
            told(full)
        if full:
            self.operations.operands.forget()
            self.graph.mark_spans()
            self.graph.mark_module(None)
            self.grads.remember_all()
            for tensor, known in self.tensors.live_leaves():
                known.version = tensor._version
        else:
            self.optimizers.forget_copies()
