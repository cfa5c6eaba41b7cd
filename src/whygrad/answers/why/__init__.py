"""Why a gradient, an error, a mode or a value is what it is: from the ledger alone, each sentence with its evidence.

The names below are imported when they are asked for: the rules use single modules of this package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from whygrad.answers.why.answer import Answer, Aspect, Moment, Sentence, Target
    from whygrad.answers.why.asked import why

__all__ = ["Answer", "Aspect", "Moment", "Sentence", "Target", "why"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{'asked' if name == 'why' else 'answer'}"), name)
