"""Near relatives of the faults of grad buffers, and correct programs that resemble them."""

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
    "an attack never resets its perturbation": (
        "gradient-not-reset",
        """
        model = nn.Linear(4, 1)
        delta = torch.zeros_like(x, requires_grad=True)
        for _ in range(4):
            loss = (model(x + delta) - y).square().mean()
            loss.backward()  # <- here
            delta.data = (delta + 0.1 * delta.grad.sign()).clamp(-0.3, 0.3)
        """,
    ),
    "a reset once an epoch": (
        "gradient-not-reset",
        """
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for epoch in range(2):
            optimizer.zero_grad()
            for i in range(4):
                loss = (model(x[i]) - y[i]).square().mean()
                loss.backward()  # <- here
                optimizer.step()
        """,
    ),
    "a closure without a reset": (
        "gradient-not-reset",
        """
        model = nn.Linear(4, 1)
        optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)

        def closure():
            loss = (model(x) - y).square().mean()
            loss.backward()  # <- here
            return loss

        optimizer.step(closure)
        """,
    ),
    "a second network is never reset": (
        "reset-misses-parameters",
        """
        encode, decode = nn.Linear(4, 2), nn.Linear(2, 1)
        optimizer = torch.optim.SGD([*encode.parameters(), *decode.parameters()], lr=0.01)
        for _ in range(3):
            decode.zero_grad()  # <- here
            loss = (decode(encode(x)) - y).square().mean()
            loss.backward()
            optimizer.step()
        """,
    ),
    "a reset of the module between backward and step": (
        "reset-before-step",
        """
        model = nn.Linear(4, 1)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(3):
            (model(x) - y).square().mean().backward()
            model.zero_grad()  # <- here
            optimizer.step()
        """,
    ),
    "an actor's loss in the critic": (
        "gradient-of-another-loss",
        """
        actor, critic = nn.Linear(4, 2), nn.Linear(2, 1)
        first = torch.optim.Adam(actor.parameters(), lr=0.01)
        second = torch.optim.Adam(critic.parameters(), lr=0.01)
        for _ in range(3):
            first.zero_grad()
            second.zero_grad()
            (-critic(actor(x)).mean()).backward()
            first.step()
            loss = (critic(actor(x).detach()) - y).square().mean()
            loss.backward()  # <- here
            second.step()
        """,
    ),
    "the loss and a total that holds it": (
        "backward-twice",
        """
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            loss = (model(x) - y).square().mean()
            loss.backward(retain_graph=True)
            total = loss + 0.1 * model.weight.abs().sum()
            total.backward()  # <- here
            optimizer.step()
        """,
    ),
    "a clip by value under the scaler": (
        "clipped-before-unscale",
        """
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=4096.0)
        for _ in range(3):
            optimizer.zero_grad()
            scaler.scale((model(x) - y).square().mean()).backward()
            nn.utils.clip_grad_value_(model.parameters(), 0.5)  # <- here
            scaler.step(optimizer)
            scaler.update()
        """,
    ),
    "a scale by hand": (
        "clipped-before-unscale",
        """
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            ((model(x) - y).square().mean() * 1024).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # <- here
            for p in model.parameters():
                p.grad.div_(1024)
            optimizer.step()
        """,
    ),
    "a clip before the backward": (
        "clip-at-wrong-moment",
        """
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            loss = (100 * model(x) - y).square().mean()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # <- here
            loss.backward()
            optimizer.step()
        """,
    ),
    "a clip of a filtered generator": (
        "clip-at-wrong-moment",
        """
        model = nn.Linear(4, 1)
        trained = filter(lambda p: p.requires_grad, model.parameters())  # <- here
        optimizer = torch.optim.SGD(trained, lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            (100 * model(x) - y).square().mean().backward()
            nn.utils.clip_grad_norm_(trained, 1.0)
            optimizer.step()
        """,
    ),
    "weight decay on pruned weights": (
        "zero-gradient-moves",
        """
        model = nn.Linear(4, 2)
        keep = (torch.rand(2, 4) > 0.5).float()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)  # <- here
        for _ in range(3):
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            model.weight.grad *= keep
            optimizer.step()
        """,
    ),
    "a gradient that is zeroed to freeze": (
        "zero-gradient-moves",
        """
        model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            model[0].weight.grad.zero_()  # <- here
            optimizer.step()
        """,
    ),
    "a window that is not divided, with a criterion": (
        "accumulation-not-scaled",
        """
        model = nn.Linear(4, 3)
        criterion = nn.CrossEntropyLoss()
        classes = torch.randint(0, 3, (8,))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        optimizer.zero_grad()
        for i in range(8):
            loss = criterion(model(x[i : i + 1]), classes[i : i + 1])
            loss.backward()  # <- here
            if i % 4 == 3:
                optimizer.step()
                optimizer.zero_grad()
        """,
    ),
    "a frozen layer with its old gradient": (
        "frozen-moves",
        """
        model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        (model(x) - y).square().mean().backward()
        optimizer.step()
        for p in model[0].parameters():
            p.requires_grad = False  # <- here
        model[2].zero_grad()
        (model(x) - y).square().mean().backward()
        optimizer.step()
        """,
    ),
}

RIGHT = {
    "a critic that is reset before its own loss": """
        actor, critic = nn.Linear(4, 2), nn.Linear(2, 1)
        first = torch.optim.Adam(actor.parameters(), lr=0.01)
        second = torch.optim.Adam(critic.parameters(), lr=0.01)
        for _ in range(3):
            second.zero_grad()
            (critic(actor(x).detach()) - y).square().mean().backward()
            second.step()
            first.zero_grad()
            (-critic(actor(x)).mean()).backward()
            first.step()
        """,
    "an attack that resets": """
        model = nn.Linear(4, 1)
        delta = torch.zeros_like(x, requires_grad=True)
        for _ in range(4):
            (model(x + delta) - y).square().mean().backward()
            delta.data = (delta + 0.1 * delta.grad.sign()).clamp(-0.3, 0.3)
            delta.grad.zero_()
        """,
    "several losses, one step": """
        model = nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            for column in range(2):
                (model(x)[:, column] - y[:, 0]).square().mean().backward()
            optimizer.step()
        """,
    "two clips, one for each network": """
        one, other = nn.Linear(4, 1), nn.Linear(4, 1)
        optimizer = torch.optim.SGD([*one.parameters(), *other.parameters()], lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            (100 * one(x) + other(x) - y).square().mean().backward()
            nn.utils.clip_grad_norm_(one.parameters(), 1.0)
            nn.utils.clip_grad_norm_(other.parameters(), 1.0)
            optimizer.step()
        """,
    "gradients that are averaged before the step": """
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for i in range(8):
            F.mse_loss(model(x[i]), y[i]).backward()
            if i % 4 == 3:
                for p in model.parameters():
                    p.grad /= 4
                optimizer.step()
                optimizer.zero_grad()
        """,
    "alternating heads that are all reset": """
        heads = nn.ModuleList([nn.Linear(4, 1), nn.Linear(4, 1)])
        optimizer = torch.optim.SGD(heads.parameters(), lr=0.1, momentum=0.9)
        for i in range(6):
            optimizer.zero_grad()
            (heads[i % 2](x) - y).square().mean().backward()
            optimizer.step()
        """,
    "weights that are clipped after the step": """
        judge = nn.Linear(4, 1)
        optimizer = torch.optim.RMSprop(judge.parameters(), lr=0.01)
        for _ in range(4):
            optimizer.zero_grad()
            judge(x).mean().backward()
            norm = sum(p.grad.norm() for p in judge.parameters())
            optimizer.step()
            for p in judge.parameters():
                p.data.clamp_(-0.1, 0.1)
        """,
    "a step is skipped when the gradients are not finite": """
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for i in range(4):
            loss = (model(x) - y).square().mean()
            loss.backward()
            if i == 1:
                optimizer.zero_grad()
                continue
            optimizer.step()
            optimizer.zero_grad()
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
