"""An expectation for a gradient that does not rest on autograd, from the ledger alone."""

from whygrad.answers.derive.answer import derivations, derive
from whygrad.answers.derive.derivation import Derivation, Status

__all__ = ["Derivation", "Status", "derivations", "derive"]
