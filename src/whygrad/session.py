"""Recording from inside a running program: `with whygrad.record() as ledger`, `whygrad.why(tensor)`.

For a debugger's prompt, a test or a notebook. `whygrad run` sees more: it compiles the program itself.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from whygrad import __version__
from whygrad.errors import BadInput
from whygrad.ledger import SCHEMA, Ledger
from whygrad.ledger.events import HELD, AnyEvent, Event, GradChanged, Header, Tensor, TensorId
from whygrad.ledger.ledger import History

if TYPE_CHECKING:
    from whygrad.answers.why import Answer, Aspect


class Recording(Ledger):
    """A ledger that follows the recording, and takes tensors where a ledger takes their ids."""

    def __init__(self, header: Header) -> None:
        self._heard: list[AnyEvent] = []
        super().__init__(header, self._heard)
        self.find_tensor: Callable[[Any], TensorId | None] = lambda _: None
        self.is_running = False
        self.is_introducing = False

    def write(self, event: Event) -> None:
        """Take one event of the recorder."""
        if self.is_introducing and isinstance(event, Tensor) and event.origin in ("created", "result"):
            event = msgspec.structs.replace(event, origin="unknown")  # it was made earlier, and not here
        self._heard.append(event)  # type: ignore[arg-type]

    def id_of(self, tensor: Any) -> TensorId:
        """The ledger's id of a tensor object. Raises BadInput where the recording never met it."""
        found = self.find_tensor(tensor)
        if found is None:
            raise BadInput("This tensor took no part in what was recorded. Was it used inside `with whygrad.record()`?")
        return found

    def history(self, tensor: Any) -> Iterator[History]:
        """What happened to the grad buffer of a tensor (an object or its id)."""
        return super().history(tensor if isinstance(tensor, int) else self.id_of(tensor))  # type: ignore[arg-type]

    def report(self, *, verbose: bool = False, width: int | None = None) -> str:
        """The report as text, as `whygrad run` prints it."""
        from whygrad.report.terminal import render

        return render(self, verbose=verbose, width=width, derivations=self._derivations())

    def html(self) -> str:
        """The report as one self-contained page."""
        from whygrad.report.html import render

        return render(self, derivations=self._derivations())

    def _derivations(self) -> Any:
        from whygrad.answers.derive import derivations

        return derivations(self)

    def _repr_html_(self) -> str:
        """A notebook shows the page in a frame of its own, so that no style of either reaches the other."""
        from html import escape

        page = escape(self.html(), quote=True)
        return f'<iframe title="whygrad" srcdoc="{page}" style="width:100%;height:32rem;border:0"></iframe>'

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text("Recording(...)" if cycle else self.report())


_last: list[Recording] = []


@contextmanager
def record(depth: str = "full") -> Iterator[Recording]:
    """Record what PyTorch does inside the block.

    Gives the ledger, which fills while the block runs: `ledger.history(tensor)`, `ledger.report()`. `depth` is
    `full`, `light` or `auto`. Exceptions of the block pass unchanged. Raises BadInput when a recording is running.

    >>> with whygrad.record() as ledger:          # doctest: +SKIP
    ...     loss = (w * 2 - 1).square()
    ...     loss.backward()
    >>> print(whygrad.why(w))                     # doctest: +SKIP
    """
    from whygrad.execute.follow import Follower

    frame = sys._getframe(2)
    with recording(frame.f_code.co_filename, depth) as (ledger, session):

        def line_over(site: int) -> None:
            recorder = session.recorder
            if recorder is not None and recorder.depth.full:
                recorder.tell("a line", recorder.graph.mark_site, site)

        follower = Follower(session.table, session.taps, line_over, session.book.lost)
        with introduced(ledger, session, frame.f_code.co_filename, frame.f_lineno):
            follower.start(frame)
        try:
            yield ledger
        finally:
            follower.stop()


@contextmanager
def introduced(ledger: Recording, session: Any, path: str, line: int) -> Iterator[None]:
    """The recorder is told in here what the program has already: it was not made at `line`, where recording begins."""
    ledger.is_introducing = True
    try:
        yield
    finally:
        ledger.is_introducing = False
    recorder = session.recorder
    if recorder is None:
        return
    site = session.table.statement(path, line)

    def tell() -> None:
        for _, known in recorder.tensors.live_leaves():
            if known.grad_value is not None:
                session.book.write(GradChanged, site, tensor=known.id, by=HELD, before=None, after=known.grad_value)

    recorder.tell("the gradients that were there before", tell)


@contextmanager
def recording(program: str, depth: str) -> Iterator[tuple[Recording, Any]]:
    """A ledger and the session that fills it, from here to the end of the block."""
    from whygrad.engines.pytorch.session import Session
    from whygrad.execute.sites import SiteTable

    if _last and _last[-1].is_running:
        raise BadInput("A recording is running already. End its block before you begin another.")
    header = Header(
        whygrad=__version__,
        schema=SCHEMA,
        program=program,
        kind="block",
        engine="pytorch",
        python=".".join(str(part) for part in sys.version_info[:3]),
        platform=f"{os.uname().sysname} {os.uname().machine}" if hasattr(os, "uname") else sys.platform,
        depth=depth,
    )
    ledger = Recording(header)
    session = Session(ledger, SiteTable(), depth)

    def find(tensor: Any) -> TensorId | None:
        known = None if session.recorder is None else session.recorder.tensors.find(tensor)
        return None if known is None else known.id

    ledger.find_tensor = find
    ledger.is_running = True
    _last[:] = [ledger]
    session.start()
    try:
        yield ledger, session
    except BaseException as error:
        session.finish("exception", 1, error)
        raise
    else:
        session.finish("returned", 0)
    finally:
        ledger.is_running = False


def last_recording() -> Recording | None:
    """The recording that was begun last, of a block or of a notebook's cell."""
    return _last[-1] if _last else None


def why(tensor: Any, aspect: str = "", ledger: Ledger | None = None) -> Answer:
    """Why is it what it is?

    `tensor` is a tensor object (its gradient is explained; `aspect="value"` or `"requires_grad"` asks for that) or
    an expression as the code writes it (`"w.grad"`, `"model"`, `"error"`). The last recording answers unless
    another ledger is given. Raises BadInput for what the ledger does not know.
    """
    from whygrad.answers.why import Target
    from whygrad.answers.why import why as answer

    if ledger is None:
        if not _last:
            raise BadInput("Nothing was recorded yet. Use `with whygrad.record() as ledger:` around the code.")
        ledger = _last[-1]
    if isinstance(tensor, str):
        return answer(ledger, f"{tensor}.{_aspect(aspect).value}" if aspect and aspect != "value" else tensor)
    if not hasattr(tensor, "requires_grad") or not hasattr(tensor, "is_leaf"):
        kind = type(tensor).__name__
        raise BadInput(
            f"why() takes a tensor or an expression as text, not a {kind}. For a module, ask for its name in the "
            "program: why('model'), why('model.training') or why('model.0.weight.grad')."
        )
    if not isinstance(ledger, Recording):
        raise BadInput("A kept ledger knows no tensor objects. Ask by name, such as `why('w.grad', ledger=ledger)`.")
    return answer(ledger, Target(ledger.id_of(tensor), _aspect(aspect or "grad")))


def _aspect(wanted: str) -> Aspect:
    from whygrad.answers.why import Aspect

    known = [aspect.value for aspect in Aspect if aspect is not Aspect.TRAINING]
    if wanted not in known:
        raise BadInput(f"{wanted!r} is nothing that can be asked of a tensor; ask for one of: {', '.join(known)}.")
    return Aspect(wanted)
