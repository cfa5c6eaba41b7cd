"""Why is this gradient what it is? Evidence for every gradient of an ordinary PyTorch program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from whygrad.ledger import read
    from whygrad.session import record, why

__version__ = "0.1.0"
__all__ = ["read", "record", "why"]


def __getattr__(name: str) -> Any:
    """`import whygrad` itself imports nothing; each name brings what it needs when it is first used."""
    if name in ("record", "why"):
        from whygrad import session

        return getattr(session, name)
    if name == "read":
        from whygrad.ledger import read

        return read
    raise AttributeError(f"module 'whygrad' has no attribute {name!r}")


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext whygrad` in IPython and Jupyter."""
    from whygrad import notebook

    notebook.load_ipython_extension(shell)
