"""An expectation for a gradient that does not rest on autograd, from the ledger alone."""

from whygrad.answers.derive.derivation import Derivation, Status
from whygrad.answers.derive.derive import derivations, derive

__all__ = ["Derivation", "Status", "derivations", "derive"]
