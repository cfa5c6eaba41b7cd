"""Small programs whose whole outcome (values, exceptions, warnings) is PyTorch's, recorded in the same run."""

from __future__ import annotations

import pytest
from judge import battery, close, run_on_embedded, run_on_pytorch, warnings_agree

CASES = [*battery("rules_and_errors"), *battery("graphs_and_hooks")]


@pytest.mark.parametrize("program", [p for _, p in CASES], ids=[n for n, _ in CASES])
def test_the_outcome_is_pytorchs(program: str) -> None:
    real, ours = run_on_pytorch(program), run_on_embedded(program)
    assert close(real.printed, ours.printed), (real.printed, ours.printed)
    assert (real.raised is None) == (ours.raised is None), (real.raised, ours.raised)
    if real.raised is not None and ours.raised is not None:
        assert real.raised[0] == ours.raised[0]
        assert close(real.raised[1], ours.raised[1]), (real.raised[1], ours.raised[1])
    assert warnings_agree(real, ours), (real.warned, ours.warned)
