"""The one error of this engine's own. Every other error it raises is PyTorch's, type and text."""

from __future__ import annotations

from typing import NoReturn

from whygrad.errors import WhygradError


class NotInEmbeddedEngine(WhygradError, NotImplementedError):
    """Something of the torch API that the embedded engine does not have, or an argument that it does not honour."""


def not_covered(what: str) -> NoReturn:
    """Refuse `what` (a function, a class, an argument): never compute something else in its place."""
    raise NotInEmbeddedEngine(
        f"the embedded engine does not cover {what}; run this program with PyTorch: "
        "`pip install torch`, then `--engine pytorch`"
    )
