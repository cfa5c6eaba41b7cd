"""Near relatives of the loop and optimizer faults, and correct programs that resemble them."""

from __future__ import annotations

import textwrap

import pytest
from running import blamed_line, findings

from whygrad.rules.finding import Severity

START = """
import copy
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
x, y = torch.randn(8, 4), torch.randn(8, 1)
"""

TRAIN = """
for _ in range(4):
    optimizer.zero_grad()
    loss = (model(x) - y).square().mean()
    loss.backward()
    optimizer.step()
"""

WRONG = {
    "one object in a dict of heads": (
        "layer-repeated",
        """
        heads = nn.ModuleDict(dict.fromkeys(["a", "b"], nn.Linear(4, 1)))  # <- here
        (heads["a"](x) + heads["b"](x)).sum().backward()
        """,
    ),
    "a layer repeated in Sequential": (
        "layer-repeated",
        """
        model = nn.Sequential(*([nn.Linear(4, 4), nn.Tanh()] * 3), nn.Linear(4, 1))  # <- here
        (model(x) - y).square().mean().backward()
        """,
    ),
    "a new momentum optimizer in every epoch": (
        "optimizer-rebuilt",
        """
        model = nn.Linear(4, 1)
        for epoch in range(4):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)  # <- here
            for _ in range(2):
                optimizer.zero_grad()
                (model(x) - y).square().mean().backward()
                optimizer.step()
        """,
    ),
    "the best model is the model": (
        "state-by-reference",
        """
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=2.0)
        best, best_model = float("inf"), None
        for _ in range(5):
            optimizer.zero_grad()
            loss = (model(x) - y).square().mean()
            loss.backward()
            optimizer.step()
            if loss.item() < best:
                best, best_loss = loss.item(), 0
                best_model = model  # <- here
        print(best_model(x).sum())
        """,
    ),
    "a shallow copy of the state": (
        "state-by-reference",
        """
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        start = copy.copy(model.state_dict())  # <- here
        for _ in range(3):
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            optimizer.step()
        model.load_state_dict(start)
        """,
    ),
    "a parameter loaded with assign": (
        "optimizer-holds-old",
        """
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        weights = {name: torch.zeros_like(value) for name, value in model.state_dict().items()}
        model.load_state_dict(weights, assign=True)  # <- here
        for _ in range(3):
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            optimizer.step()
        """,
    ),
    "the optimizer of a deep copy": (
        "optimizer-holds-old",
        """
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # <- here
        model = copy.deepcopy(model)
        for _ in range(3):
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            optimizer.step()
        """,
    ),
    "parameters in a list": (
        "layers-in-container",
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.gains = [nn.Parameter(torch.ones(4)) for _ in range(2)]  # <- here
                self.out = nn.Linear(4, 1)

            def forward(self, x):
                for gain in self.gains:
                    x = x * gain
                return self.out(x)

        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            optimizer.step()
        """,
    ),
    "layers in a tuple": (
        "layers-in-container",
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.pair = (nn.Linear(4, 4), nn.Linear(4, 1))  # <- here
                self.scale = nn.Parameter(torch.ones(1))

            def forward(self, x):
                return self.scale * self.pair[1](torch.tanh(self.pair[0](x)))

        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            optimizer.step()
        """,
    ),
    "a gate and an output layer that are both zero": (
        "both-factors-zero",
        """
        class Gated(nn.Module):
            def __init__(self):
                super().__init__()
                self.base = nn.Linear(4, 1)
                self.side = nn.Linear(4, 1, bias=False)
                nn.init.zeros_(self.side.weight)  # <- here
                self.gate = nn.Parameter(torch.zeros(1))

            def forward(self, x):
                return self.base(x) + self.gate * self.side(x)

        model = Gated()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            optimizer.step()
        """,
    ),
    "a parameter too large for its rate in float32": (
        "update-lost-in-precision",
        """
        w = torch.full((4, 1), 1e6, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=1e-9)
        for _ in range(4):
            optimizer.zero_grad()
            (x @ w - y).abs().mean().backward()
            optimizer.step()  # <- here
        """,
    ),
    "a half model": (
        "update-lost-in-precision",
        """
        model = nn.Linear(4, 1, bias=False)
        nn.init.constant_(model.weight, 4.0)
        model.half()  # <- here
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
        for _ in range(4):
            optimizer.zero_grad()
            (model(x.half()) - y.half()).square().mean().backward()
            optimizer.step()
        """,
    ),
    "a target with a mask of ended episodes": (
        "target-carries-gradient",
        """
        q = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        after, reward, done = torch.randn(8, 4), torch.ones(8), torch.zeros(8)
        action = torch.zeros(8, 1, dtype=torch.long)
        chosen = q(x).gather(1, action).squeeze(1)
        best = q(after).max(1)[0]
        goal = reward + 0.99 * (1 - done) * best  # <- here
        F.smooth_l1_loss(chosen, goal).backward()
        """,
    ),
    "the update of a loop variable": (
        "update-rebinds",
        """
        model = nn.Linear(4, 1)
        for _ in range(3):
            model.zero_grad()
            (model(x) - y).square().mean().backward()
            for p in model.parameters():
                p = p - 0.1 * p.grad  # <- here
        """,
    ),
    "a soft update of the loop's variable": (
        "update-rebinds",
        """
        model = nn.Linear(4, 1)
        target = copy.deepcopy(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(4):
            with torch.no_grad():
                goal = 1.0 + 0.9 * target(x)
            optimizer.zero_grad()
            (model(x) - goal).square().mean().backward()
            optimizer.step()
            with torch.no_grad():
                for slow, fast in zip(target.parameters(), model.parameters()):
                    slow = 0.9 * slow + 0.1 * fast  # <- here
        """,
    ),
    "a rate of zero": (
        "rate-zero",
        """
        model = nn.Linear(4, 1)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.0)  # <- here
        for _ in range(4):
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            optimizer.step()
        """,
    ),
    "an exponential decay in every batch": (
        "scheduler-rate",
        """
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        decay = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        for epoch in range(5):
            for i in range(8):
                optimizer.zero_grad()
                (model(x[i]) - y[i]).square().mean().backward()
                optimizer.step()
                decay.step()  # <- here
        """,
    ),
    "a cosine over epochs in every batch": (
        "scheduler-rate",
        """
        model = nn.Linear(4, 1)
        epochs = 5
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
        for epoch in range(epochs):
            for i in range(8):
                optimizer.zero_grad()
                (model(x[i]) - y[i]).square().mean().backward()
                optimizer.step()
                cosine.step()  # <- here
        """,
    ),
    "a step above the backward, without a reset between": (
        "nothing-stepped",
        """
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(4):
            loss = (model(x) - y).square().mean()
            optimizer.step()  # <- here
            optimizer.zero_grad()
            loss.backward()
        """,
    ),
    "a cross entropy with its sign turned": (
        "loss-maximised",
        """
        model = nn.Linear(4, 3)
        criterion = nn.CrossEntropyLoss()
        classes = torch.randint(0, 3, (8,))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        for _ in range(5):
            optimizer.zero_grad()
            loss = criterion(model(x), classes)
            (-loss).backward()  # <- here
            optimizer.step()
        """,
    ),
    "a moving average that is the weight": (
        "snapshot-is-live",
        """
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        average = [p.detach() for p in model.parameters()]  # <- here
        for _ in range(4):
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            optimizer.step()
            with torch.no_grad():
                for kept, p in zip(average, model.parameters()):
                    kept.mul_(0.9).add_(p, alpha=0.1)
        """,
    ),
    "twin critics that are one": (
        "same-object",
        """
        class Critics(nn.Module):
            def __init__(self):
                super().__init__()
                self.first = nn.Linear(4, 1)
                self.second = self.first  # <- here

            def forward(self, x):
                return torch.min(self.first(x), self.second(x))

        model = Critics()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            optimizer.step()
        """,
    ),
    "a weight whose data is tied": (
        "tying-broken",
        """
        class Tied(nn.Module):
            def __init__(self):
                super().__init__()
                self.encode = nn.Linear(4, 4, bias=False)
                self.decode = nn.Linear(4, 4, bias=False)
                self.decode.weight.data = self.encode.weight.data  # <- here

            def forward(self, x):
                return self.decode(torch.tanh(self.encode(x)))

        model = Tied()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (model(x) - x).square().mean().backward()
            optimizer.step()
        """,
    ),
    "a layer that is a class attribute": (
        "layer-shared-by-default",
        """
        class Block(nn.Module):
            scale = nn.Linear(4, 4)  # <- here

            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(4, 4)

            def forward(self, x):
                return self.scale(self.linear(x))

        model = nn.Sequential(Block(), Block())
        model(x).square().mean().backward()
        """,
    ),
    "a parameter that was cast": (
        "tensor-not-parameter",
        """
        class Scaled(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(4, 1)
                self.shift = torch.zeros(1).requires_grad_()  # <- here

            def forward(self, x):
                return self.linear(x) + self.shift

        model = Scaled()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            optimizer.step()
        """,
    ),
    "another network was forgotten": (
        "parameter-not-in-optimizer",
        """
        encode, decode = nn.Linear(4, 2), nn.Linear(2, 1)
        optimizer = torch.optim.SGD(decode.parameters(), lr=0.1)  # <- here
        for _ in range(3):
            optimizer.zero_grad()
            (decode(encode(x)) - y).square().mean().backward()
            optimizer.step()
        """,
    ),
}

RIGHT = {
    "a universal transformer repeats on purpose": """
        block = nn.Linear(4, 4)
        for _ in range(3):
            h = x
            for _ in range(4):
                h = torch.tanh(block(h))
            h.mean().backward()
        """,
    "an optimizer a fold": """
        for fold in range(4):
            model = nn.Linear(4, 1)
            optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
            for _ in range(3):
                optimizer.zero_grad()
                (model(x) - y).square().mean().backward()
                optimizer.step()
        """,
    "a checkpoint is written, not kept": """
        import io
        model = nn.Linear(4, 1)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            optimizer.step()
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save(state, io.BytesIO())
        final = model.state_dict()
        twin = nn.Linear(4, 1)
        twin.load_state_dict(final)
        """,
    "a target network under no_grad": """
        model = nn.Linear(4, 1)
        target = copy.deepcopy(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(4):
            with torch.no_grad():
                goal = 1.0 + 0.9 * target(x)
            optimizer.zero_grad()
            (model(x) - goal).square().mean().backward()
            optimizer.step()
            with torch.no_grad():
                for slow, fast in zip(target.parameters(), model.parameters()):
                    slow.mul_(0.9).add_(fast, alpha=0.1)
        """,
    "only the head is trained, and the rest is frozen": """
        body, head = nn.Linear(4, 4).requires_grad_(False), nn.Linear(4, 1)
        optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
        for _ in range(4):
            optimizer.zero_grad()
            (head(body(x)) - y).square().mean().backward()
            optimizer.step()
        """,
    "one factor of a product is zero": """
        down, up = nn.Linear(4, 2, bias=False), nn.Linear(2, 1, bias=False)
        nn.init.zeros_(up.weight)
        optimizer = torch.optim.Adam([*down.parameters(), *up.parameters()], lr=0.1)
        for _ in range(4):
            optimizer.zero_grad()
            (up(down(x)) - y).square().mean().backward()
            optimizer.step()
        """,
    "a warm-up that starts at zero": """
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, step / 3))
        for _ in range(5):
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            optimizer.step()
            warmup.step()
        """,
    "a saturating adversary with two optimizers": """
        make, judge = nn.Linear(4, 3), nn.Linear(3, 1)
        first = torch.optim.SGD(make.parameters(), lr=0.1)
        second = torch.optim.SGD(judge.parameters(), lr=0.1)
        for _ in range(4):
            second.zero_grad()
            F.binary_cross_entropy_with_logits(judge(make(x).detach()), torch.zeros(8, 1)).backward()
            second.step()
            first.zero_grad()
            (-F.binary_cross_entropy_with_logits(judge(make(x)), torch.zeros(8, 1))).backward()
            first.step()
        """,
    "an attack climbs the loss": """
        model = nn.Linear(4, 3).requires_grad_(False)
        delta = torch.zeros(8, 4, requires_grad=True)
        optimizer = torch.optim.SGD([delta], lr=0.1)
        for _ in range(4):
            optimizer.zero_grad()
            (-F.cross_entropy(model(x + delta), torch.zeros(8, dtype=torch.long))).backward()
            optimizer.step()
        """,
    "layers in order, kept in a list beside": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 1)
                self.order = [self.first, self.second]

            def forward(self, x):
                for layer in self.order:
                    x = layer(x)
                return x

        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            optimizer.step()
        """,
    "a multi-step decay in epochs": """
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        decay = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[2, 4], gamma=0.1)
        for epoch in range(6):
            for i in range(8):
                optimizer.zero_grad()
                (model(x[i]) - y[i]).square().mean().backward()
                optimizer.step()
            decay.step()
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
