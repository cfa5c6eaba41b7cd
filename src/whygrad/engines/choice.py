"""Which engine runs a program."""

from __future__ import annotations

import importlib.machinery
import sys
from enum import Enum
from typing import TYPE_CHECKING

from whygrad.errors import BadInput

if TYPE_CHECKING:
    from whygrad.engines.book import Sink
    from whygrad.engines.pytorch.session import Session
    from whygrad.execute.sites import SiteTable


class Engine(Enum):
    """What `import torch` gives a program."""

    PYTORCH = "pytorch"
    EMBEDDED = "embedded"


def has_pytorch() -> bool:
    """Whether PyTorch can be found; it is not imported."""
    return "torch" in sys.modules or importlib.machinery.PathFinder.find_spec("torch") is not None


def choose(wanted: str) -> Engine:
    """The engine that was asked for; `auto` is PyTorch where it is installed. Raises BadInput if it is not there."""
    if wanted == "auto":
        return Engine.PYTORCH if has_pytorch() else Engine.EMBEDDED
    engine = Engine(wanted)
    if engine is Engine.PYTORCH and not has_pytorch():
        raise BadInput(
            "PyTorch is not installed here; `pip install torch`, or run on the embedded engine: --engine embedded."
        )
    return engine


def session(engine: Engine, sink: Sink, table: SiteTable, depth: str) -> Session:
    """A session that records a program on `engine`."""
    if engine is Engine.EMBEDDED:
        from whygrad.engines.embedded.session import EmbeddedSession

        return EmbeddedSession(sink, table, depth)
    from whygrad.engines.pytorch.session import Session

    return Session(sink, table, depth)
