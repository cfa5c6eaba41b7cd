"""The same program gives the same ledger on both engines."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from judge import battery
from recorded import ledger

from whygrad.engines.choice import Engine
from whygrad.engines.witness import Difference, differences
from whygrad.ledger import Ledger
from whygrad.ledger.events import GradWritten, Lost
from whygrad.ledger.values import whole

EXAMPLES = Path(__file__).parents[3] / "examples"
BATTERY = [program for name in ("graphs_and_hooks", "rules_and_errors") for program in battery(name)]

TOLD_OTHERWISE = {
    "graphs_and_hooks-10": "the line that a written view's new node is put down to",
    "graphs_and_hooks-18": "the node of a custom function that returned too few gradients is blamed",
    "graphs_and_hooks-23": "how often gradcheck's steps are told",
    "graphs_and_hooks-71": "what a checkpoint runs again",
    "graphs_and_hooks-73": "the line that anomaly mode's warning is put down to",
    "graphs_and_hooks-74": "how jacobian splits its rows",
    "graphs_and_hooks-75": "torch.func is recorded inside",
}
"""Programs whose ledgers are known to differ, and in what."""


def both(code: str) -> list[str]:
    """Where the ledgers differ."""
    import torch as real

    from whygrad.engines.embedded import torch as embedded
    from whygrad.engines.embedded import warn

    real.set_warn_always(True)
    warn._said.clear()
    for torch in (real, embedded):
        torch.manual_seed(0)
        torch.set_grad_enabled(True)
    try:
        ours, theirs = ledger(code, Engine.EMBEDDED), ledger(code, Engine.PYTORCH)
    finally:
        real.set_warn_always(False)
    assert [f"{lost.what}: {lost.why}" for lost in ours.of(Lost)] == [
        f"{lost.what}: {lost.why}" for lost in theirs.of(Lost)
    ]
    return [f"{one.where} {one.what}: {one.first} | {one.second}" for one in differences(theirs, ours)]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_examples_give_the_same_ledger(path: Path) -> None:
    assert both(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(("name", "code"), BATTERY, ids=[name for name, _ in BATTERY])
def test_small_programs_give_the_same_ledger(name: str, code: str) -> None:
    found = both(code)
    if name not in TOLD_OTHERWISE:
        assert found == []


TRAINING = """
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), {layers}, nn.Linear(8, 3))
optimizer = torch.optim.{optimizer}(model.parameters(), lr=0.05)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
loader = DataLoader(TensorDataset(torch.randn(12, 4), torch.arange(12) % 3), batch_size=4, shuffle=True)
for epoch in range(2):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        print(model(x).argmax(1))
state = model.state_dict()
model.load_state_dict(state)
"""


@pytest.mark.parametrize(
    ("layers", "optimizer"),
    [
        ("nn.ReLU()", "AdamW"),
        ("nn.BatchNorm1d(8), nn.Tanh()", "SGD"),  # Adam would blow up the rounding errors of a gradient that is zero
        ("nn.LayerNorm(8), nn.Dropout(0.2)", "RMSprop"),
    ],
)
def test_training_gives_the_same_ledger(layers: str, optimizer: str) -> None:
    assert both(TRAINING.format(layers=layers, optimizer=optimizer)) == []


def test_the_double_gradient_of_the_lab_is_found_on_both() -> None:
    code = (EXAMPLES / "gradient_lab.py").read_text(encoding="utf-8")
    for engine in Engine:
        written = [event.after.scalar for event in ledger(code, engine).of(GradWritten)]
        assert written == [20.0, 40.0, 20.0]


def test_a_wrong_number_is_reported_where_it_stands() -> None:
    first = ledger("import torch\nw = torch.tensor(3.0, requires_grad=True)\n(w * 2).backward()\n", Engine.PYTORCH)
    wrong = [
        msgspec.structs.replace(event, after=whole((), "float32", [4.0])) if isinstance(event, GradWritten) else event
        for event in first
    ]
    found = list(differences(first, Ledger(first.header, wrong)))
    assert found == [Difference("line 3", "grad written.after", "float32 () [2.0]", "float32 () [4.0]")]
