"""Every operator of the table is right on PyTorch's own samples: values, types, gradients, second gradients."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import pytest

pytest.importorskip("expecttest")
import operators


@cache
def catalogue() -> dict[str, Any]:
    return operators.catalogue()


@pytest.mark.parametrize("name", operators.covered())
def test_samples_of(name: str) -> None:
    op = catalogue().get(name)
    if op is None:
        pytest.skip("not in this PyTorch's catalogue")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        verdict = operators.judge_operator(name, op, samples_at_most=4)
    assert verdict.right == verdict.tried, verdict.faults
