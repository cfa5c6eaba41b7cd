"""One recorded run: compiles nothing and executes nothing, but watches while the program does.

Torch is probed at the moment the program imports it, not before: settings that the program makes first
(environment variables, warning filters) keep their effect.
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

from whygrad.engines.book import Book, Sink
from whygrad.engines.pytorch.probe import ProbeError, Probes
from whygrad.engines.pytorch.recorder import Recorder
from whygrad.engines.pytorch.taps import Taps, message, raising_site
from whygrad.engines.pytorch.wiring import Wiring
from whygrad.execute import idle
from whygrad.execute.imports import await_import, await_no_more
from whygrad.execute.sites import SiteTable
from whygrad.ledger.events import Ended, Environment, Noted, Raised, Warned


class Session:
    """Records one program on PyTorch.

    `taps` go into the instrumented code. `start` before the program runs, `finish` when it is over.
    """

    engine = "pytorch"
    records: type[Recorder] = Recorder
    wires: type[Wiring] = Wiring

    def __init__(self, sink: Sink, table: SiteTable, depth: str = "auto") -> None:
        self.table = table
        self.book = Book(sink, table)
        self.taps = Taps(self.book, table)
        self.depth = depth
        self.probes = Probes()
        self.recorder: Recorder | None = None
        self._hooks: list[Any] = []
        self._environment: dict[str, Any] = {}
        self._noted_fork = False
        self._failed = False

    def start(self) -> None:
        self._watch_warnings()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked, after_in_parent=self._has_forked)
        if "torch" in sys.modules:
            self._torch_imported(sys.modules["torch"], late=True)
        else:
            await_import("torch", self._torch_imported)

    def finish(self, how: str, exit_code: int, error: BaseException | None = None) -> None:
        """Write what is still open, take the probes away, end the ledger."""
        recorder = self.recorder
        if recorder is not None:
            recorder.tell("the end of the run", recorder.finish)
            self._write_environment(recorder.torch)
        elif "torch" in sys.modules and not self._failed:
            self.book.lost("everything about torch", "it was imported in a way that is not followed")
        if error is not None and how in ("exception", "interrupted"):
            site = raising_site(error, self.table)
            self.book.write(Raised, site, kind=type(error).__name__, text=message(error))
        self.detach()
        self.book.write(Ended, how=how, exit_code=exit_code)
        self.book.close()

    def detach(self) -> None:
        """Leave torch and the interpreter as they were found."""
        self.taps.recorder = None
        self.taps.idle = True
        idle.restore()
        self.probes.restore()
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        await_no_more("torch")

    def _switched(self, full: bool) -> None:
        self.taps.idle = not full

    def _forked(self) -> None:
        """A child made by `fork` goes on without us."""
        self.book.close()
        self.taps.recorder = None
        self.taps.idle = True
        if self.recorder is not None:
            self.recorder.backwards.forked()

    def _has_forked(self) -> None:
        """Say once that there is a child that is not recorded."""
        if self._noted_fork or self.recorder is None:
            return
        self._noted_fork = True
        try:
            text = "processes that the program forks, such as the workers of a DataLoader, are not recorded"
            self.book.write(Noted, self.recorder.user_site(), text=text)
        except Exception as error:
            self.book.lost("a fork", error)

    # --- torch ------------------------------------------------------------------------------------

    def _torch_imported(self, torch: Any, late: bool = False) -> None:
        try:
            self._write_environment(torch)
            recorder = self.records(torch, self.book, self.table, self.depth)
            self.recorder = recorder
            self.wires(torch, recorder, self.probes, self._hooks, self._uncompilable, late).install()
            recorder.on_switch.append(self._switched)
            self.taps.recorder = recorder
            if not recorder.depth.full:
                recorder.switched(False)
        except Exception as error:
            self._failed = True
            self.book.lost("everything about torch", error)

    def _write_environment(self, torch: Any) -> None:
        numpy = sys.modules.get("numpy")
        found = {
            "engine": self.engine,
            "version": str(torch.__version__),
            "numpy": str(getattr(numpy, "__version__", "")),
            "threads": int(torch.get_num_threads()),
            "deterministic": bool(torch.are_deterministic_algorithms_enabled()),
            "default_dtype": str(torch.get_default_dtype()).removeprefix("torch."),
            "device": "cuda" if torch.cuda.is_initialized() else "cpu",
        }
        if found != self._environment:
            self._environment = found
            self.book.write(Environment, **found)

    def _uncompilable(self) -> None:
        """`torch.compile` reads bytecode: give it the program's own, without taps and probes."""
        import gc
        from types import FunctionType

        plain = self.table.plain
        for function in gc.get_objects():
            if type(function) is FunctionType:
                original = plain.get(function.__code__)
                if original is not None:
                    function.__code__ = original

    # --- warnings ---------------------------------------------------------------------------------

    def _watch_warnings(self) -> None:
        def shown(shown: Any) -> None:
            try:
                site = (
                    self.table.statement(shown.filename, shown.lineno) if shown.filename in self.table.files else None
                )
                text = str(shown.message).split(" (Triggered internally")[0]
                self.book.write(Warned, site, kind=shown.category.__name__, text=text)
            except Exception as error:
                self.book.lost("a warning", error)

        try:
            self.probes.add(
                warnings._showwarnmsg,  # type: ignore[attr-defined]
                before=shown,
                after=lambda result: result,
                failed=lambda: None,
            )
        except (ProbeError, AttributeError) as error:
            self.book.lost("warnings", error)
