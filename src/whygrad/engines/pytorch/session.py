"""One recorded run: compiles nothing and executes nothing, but watches while the program does.

Torch is probed at the moment the program imports it, not before: settings that the program makes first
(environment variables, warning filters) keep their effect.
"""

from __future__ import annotations

import importlib.machinery
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from whygrad.engines.book import Book, Sink
from whygrad.engines.pytorch.probe import ProbeError, Probes
from whygrad.engines.pytorch.recorder import Recorder
from whygrad.engines.pytorch.taps import Taps, message, raising_site
from whygrad.engines.pytorch.wiring import Wiring
from whygrad.execute import idle
from whygrad.execute.sites import SiteTable
from whygrad.ledger.events import Ended, Environment, Raised, Warned

IMPORT_FRAMES = "<frozen importlib._bootstrap_external>"
"""Python leaves frames of this file out of the tracebacks of failed imports."""


class Session:
    """Records one program on PyTorch.

    `taps` go into the instrumented code. `start` before the program runs, `finish` when it is over.
    """

    def __init__(self, sink: Sink, table: SiteTable, depth: str = "auto") -> None:
        self.table = table
        self.book = Book(sink, table)
        self.taps = Taps(self.book, table)
        self.depth = depth
        self.probes = Probes()
        self.recorder: Recorder | None = None
        self._finder: _Finder | None = None
        self._hooks: list[Any] = []
        self._environment: dict[str, Any] = {}

    def start(self) -> None:
        self._watch_warnings()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)
        if "torch" in sys.modules:
            self._torch_imported(sys.modules["torch"])
        else:
            self._finder = _Finder(self._torch_imported)
            sys.meta_path.insert(0, self._finder)

    def finish(self, how: str, exit_code: int, error: BaseException | None = None) -> None:
        """Write what is still open, take the probes away, end the ledger."""
        recorder = self.recorder
        if recorder is not None:
            recorder.tell("the end of the run", recorder.finish)
            self._write_environment(recorder.torch)
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
        if self._finder is not None and self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)

    def _switched(self, full: bool) -> None:
        self.taps.idle = not full

    def _forked(self) -> None:
        """A child made by `fork` goes on without us."""
        self.book.close()
        self.taps.recorder = None
        self.taps.idle = True
        if self.recorder is not None:
            self.recorder.backwards.forked()

    # --- torch ------------------------------------------------------------------------------------

    def _torch_imported(self, torch: Any) -> None:
        try:
            self._write_environment(torch)
            recorder = Recorder(torch, self.book, self.table, self.depth)
            self.recorder = recorder
            Wiring(torch, recorder, self.probes, self._hooks, self._uncompilable).install()
            recorder.on_switch.append(self._switched)
            self.taps.recorder = recorder
            if not recorder.depth.full:
                recorder.switched(False)
        except Exception as error:
            self.book.lost("everything about torch", error)

    def _write_environment(self, torch: Any) -> None:
        numpy = sys.modules.get("numpy")
        found = {
            "engine": "pytorch",
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


class _Finder:
    """A meta path finder that lets the others find torch, and calls back when it has been imported.

    It has no base class: importing that takes 8 ms.
    """

    def __init__(self, imported: Callable[[Any], None]) -> None:
        self._imported = imported

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != "torch":
            return None
        for finder in sys.meta_path:
            if finder is self:
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None and spec.loader is not None:
                loader = spec.loader
                loader.exec_module = _calling_back(loader, self._imported, self)  # type: ignore[assignment, method-assign]
                return spec
        return None


def _calling_back(loader: Any, imported: Callable[[Any], None], finder: _Finder) -> Callable[[ModuleType], None]:
    plain = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        del loader.exec_module
        if finder in sys.meta_path:
            sys.meta_path.remove(finder)
        plain(module)
        imported(module)

    exec_module.__code__ = exec_module.__code__.replace(co_filename=IMPORT_FRAMES)
    return exec_module
