"""The embedded engine is judged by PyTorch: without it these tests have no meaning."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True, scope="session")
def quiet() -> Iterator[None]:
    """What a run sets up: NumPy is silent in the engine's operations."""
    from whygrad.engines.embedded.quiet import be_quiet

    restore = be_quiet()
    yield
    restore()
