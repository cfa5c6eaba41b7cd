"""The embedded engine is judged by PyTorch: without it these tests have no meaning."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent))
