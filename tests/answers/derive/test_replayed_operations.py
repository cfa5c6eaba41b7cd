"""Every operation of the table against PyTorch: its gradient agrees, and a wrong one does not."""

from __future__ import annotations

import pytest
import torch
from derive_programs import PROGRAMS, Program
from derive_tracer import Tracer

from whygrad.answers.derive import Status


def spread(result: torch.Tensor) -> torch.Tensor:
    """A number of any result, in which every element has a weight of its own."""
    weights = torch.linspace(0.5, 1.5, max(result.numel(), 1)).reshape(result.shape)
    return (result * weights).sum()


@pytest.mark.parametrize(("program", "data"), PROGRAMS.values(), ids=PROGRAMS)
@pytest.mark.filterwarnings("ignore:Using a target size", "ignore:reduction. 'mean'", "ignore:The use of")
def test_the_gradient_agrees_and_a_wrong_one_does_not(program: Program, data: list[list[float]]) -> None:
    for wrong in (False, True):
        tracer = Tracer()
        x = tracer.leaf(data, "x")
        with tracer:
            root = spread(program(x))
        bend = (lambda gradient: gradient * 1.01 + 0.01) if wrong else None
        (derivation,) = tracer.derive(root, x, bend=bend)
        assert derivation.status is (Status.DISAGREES if wrong else Status.AGREES), derivation
