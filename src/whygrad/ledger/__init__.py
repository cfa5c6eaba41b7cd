"""The ledger: what happened to every gradient, in order, in words that belong to no engine."""

from whygrad.ledger import events
from whygrad.ledger.ledger import Ledger
from whygrad.ledger.store import SCHEMA, Writer, read

__all__ = ["SCHEMA", "Ledger", "Writer", "events", "read"]
