"""A package in the package."""

from ..failing import call as call_of_parent
from . import inner

NAME = inner.value(), __name__, __path__ is not None, call_of_parent(lambda: 1)
