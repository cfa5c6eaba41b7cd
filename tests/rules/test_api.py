"""Near relatives of calls that do not do what they seem to do, and correct programs that resemble them."""

from __future__ import annotations

import textwrap

import pytest
from running import blamed_line, findings

from whygrad.rules.finding import Severity

START = """
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
x, y = torch.randn(8, 4), torch.randn(8, 1)
"""

WRONG = {
    "a gradient that is divided out of place": (
        "result-dropped",
        """
        model = nn.Linear(4, 1)
        (model(x) - y).square().mean().backward()
        for p in model.parameters():
            p.grad.div(2)  # <- here
        """,
    ),
    "a normalised input that nobody keeps": (
        "result-dropped",
        """
        F.normalize(x, dim=1)  # <- here
        nn.Linear(4, 1)(x).mean().backward()
        """,
    ),
    "a target that is reshaped in vain": (
        "result-dropped",
        """
        y.squeeze(1)  # <- here
        nn.Linear(4, 1)(x).sub(y).square().mean().backward()
        """,
    ),
    "from_pretrained on a layer of a script": (
        "construction-dropped",
        """
        table = nn.Embedding(5, 3)
        table.from_pretrained(torch.ones(5, 3))  # <- here
        table(torch.tensor([1, 2])).sum().backward()
        """,
    ),
    "a step that is not called": (
        "method-not-called",
        """
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(4):
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            optimizer.step  # <- here
        """,
    ),
    "an initialisation of a copy": (
        "copy-written",
        """
        layer = nn.Linear(4, 1)
        nn.init.zeros_(layer.bias)
        layer.weight.data.clone().fill_(0.5)  # <- here
        layer(x).sum().backward()
        """,
    ),
    "a write through listed rows": (
        "copy-written",
        """
        rows = torch.tensor([0, 2])
        x[rows].mul_(0)  # <- here
        nn.Linear(4, 1)(x).sum().backward()
        """,
    ),
    "forward of a submodule with a hook": (
        "forward-called",
        """
        model = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 1))
        kept = []
        model[0].register_forward_hook(lambda module, given, out: kept.append(out))
        model.forward(x).sum().backward()  # <- here
        """,
    ),
}

RIGHT = {
    "calls whose result is not needed": """
        model = nn.Linear(4, 1)
        model.to("cpu").train()
        model(x)
        with torch.no_grad():
            model.weight.clamp_(-1, 1)
        (model(x) - y).square().mean().backward()
        x.mean()
        """,
    "an operation that is expected to fail": """
        try:
            x.view(5, 5)
        except RuntimeError:
            pass
        nn.Linear(4, 1)(x).sum().backward()
        """,
    "a method that is handed on": """
        model = nn.Linear(4, 1)
        hooks = [model.zero_grad]
        model(x).sum().backward()
        hooks[0]()
        """,
    "a mask hook, registered once": """
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model.weight.register_hook(lambda grad: grad * torch.tensor([[1.0, 0.0, 1.0, 1.0]]))
        for _ in range(3):
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            optimizer.step()
        """,
    "writes that reach the tensor": """
        x[:, 0].mul_(2)
        x[x > 1] = 0
        x[torch.tensor([0, 2])] *= 2
        nn.Linear(4, 1)(x).sum().backward()
        """,
}


def program(code: str) -> str:
    return START + textwrap.dedent(code)


@pytest.mark.parametrize(("slug", "code"), WRONG.values(), ids=WRONG)
def test_a_relative_is_found_on_its_line(slug: str, code: str) -> None:
    diagnosis = findings(program(code))
    assert not diagnosis.failed
    told = [(one.slug, one.place.line) for one in diagnosis.findings]
    assert (slug, blamed_line(program(code))) in told, told


@pytest.mark.parametrize("code", RIGHT.values(), ids=RIGHT)
def test_a_lookalike_raises_no_alarm(code: str) -> None:
    diagnosis = findings(program(code))
    assert not diagnosis.failed
    alarms = [one for one in diagnosis.findings if one.severity is not Severity.NOTE]
    assert not alarms, [(one.slug, one.place.line, one.title) for one in alarms]
