"""Faults of training and evaluation mode in other shapes than the rules' own examples, and correct programs."""

from __future__ import annotations

import pytest
from running import blamed_line, findings

from whygrad.rules.finding import Severity
from whygrad.rules.registry import rules

MODES = [rule for rule in rules() if rule.code.startswith("WG3")]

NET = """
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 8)
        self.norm = nn.BatchNorm1d(8)
        self.drop = nn.Dropout(0.3)
        self.out = nn.Linear(8, 2)

    def forward(self, x):
        return self.out(self.drop(torch.relu(self.norm(self.fc(x)))))

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
batches = [(torch.randn(6, 4), torch.arange(6) % 2) for _ in range(3)]

def step(x, y):
    loss = F.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()
"""

WRONG = {
    "eval in a function of its own, train before the loop": (
        "WG301",
        """
def accuracy(model):
    model.eval()  # <- here
    hits = 0
    with torch.no_grad():
        for x, y in batches:
            hits += (model(x).argmax(1) == y).sum().item()
    return hits

net.train()
for epoch in range(3):
    for x, y in batches:
        step(x, y)
    accuracy(net)
""",
    ),
    "train(False) for validation": (
        "WG301",
        """
for epoch in range(3):
    for x, y in batches:
        step(x, y)
    net.train(False)  # <- here
    with torch.no_grad():
        F.cross_entropy(net(x), y)
""",
    ),
    "a model that was never in training mode": (
        "WG301",
        """
net.eval()  # <- here
for epoch in range(3):
    for x, y in batches:
        step(x, y)
""",
    ),
    "accuracy in training mode under no_grad": (
        "WG302",
        """
for epoch in range(2):
    for x, y in batches:
        step(x, y)
    hits = 0
    with torch.no_grad():
        for x, y in batches:
            hits += (net(x).argmax(1) == y).sum().item()  # <- here
""",
    ),
    "validation in training mode with the graph on": (
        "WG302",
        """
for x, y in batches:
    step(x, y)
val_loss = F.cross_entropy(net(batches[0][0]), batches[0][1])  # <- here
print(val_loss.item())
""",
    ),
    "functional dropout2d in a helper": (
        "WG304",
        """
def thin(x):
    return F.dropout2d(x, p=0.4)  # <- here

class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)

    def forward(self, x):
        return thin(self.conv(x)).sum((2, 3))

conv = Conv()
conv.eval()
with torch.no_grad():
    print(conv(torch.ones(2, 1, 5, 5)))
""",
    ),
    "dropout with training=True": (
        "WG304",
        """
class Always(nn.Module):
    def forward(self, x):
        return F.dropout(x, 0.5, training=True)  # <- here

print(Always().eval()(torch.ones(4)))
""",
    ),
    "dropouts in a plain list": (
        "WG304",
        """
class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.drops = [nn.Dropout(0.5)]  # <- here

    def forward(self, x):
        for drop in self.drops:
            x = drop(self.fc(x))
        return x

stack = Stack()
stack.eval()
print(stack(torch.ones(2, 4)))
""",
    ),
    "frozen backbone, no eval at all": (
        "WG306",
        """
net.fc.requires_grad_(False)
net.norm.requires_grad_(False)  # <- here
optimizer = torch.optim.SGD(net.out.parameters(), lr=0.1)
for x, y in batches:
    step(x, y)
""",
    ),
    "checkpointed method of the user's own": (
        "WG305",
        """
from torch.utils.checkpoint import checkpoint

def block(x):
    return torch.relu(net.norm(net.fc(x)))

hidden = checkpoint(block, batches[0][0], use_reentrant=False)  # <- here
net.out(hidden).sum().backward()
""",
    ),
    "inference mode as a decorator": (
        "WG308",
        """
@torch.inference_mode()  # <- here
def features(x):
    return torch.relu(net.fc(x))

h = features(batches[0][0])
F.cross_entropy(net.out(h), batches[0][1]).backward()
""",
    ),
    "an inference tensor is written in place later": (
        "WG308",
        """
with torch.inference_mode():  # <- here
    centre = torch.zeros(8)
centre.mul_(0.9)
""",
    ),
    "the training flag set by hand": (
        "WG303",
        """
net.training = False  # <- here
with torch.no_grad():
    net(batches[0][0])
""",
    ),
    "a single sample for inference in training mode": (
        "WG311",
        """
print(net(torch.ones(1, 4)))  # <- here
""",
    ),
}

RIGHT = {
    "train and eval in turn": """
for epoch in range(3):
    net.train()
    for x, y in batches:
        step(x, y)
    net.eval()
    with torch.no_grad():
        for x, y in batches:
            F.cross_entropy(net(x), y).item()
""",
    "an attack in evaluation mode within adversarial training": """
for x, y in batches:
    net.eval()
    delta = torch.zeros_like(x, requires_grad=True)
    (grad,) = torch.autograd.grad(F.cross_entropy(net(x + delta), y), delta)
    net.train()
    step(x + 0.1 * grad.sign(), y)
""",
    "frozen normalisation put back after train()": """
net.norm.requires_grad_(False)
optimizer = torch.optim.SGD([*net.fc.parameters(), *net.out.parameters()], lr=0.1)
for epoch in range(2):
    net.train()
    net.norm.eval()
    for x, y in batches:
        step(x, y)
""",
    "Monte Carlo dropout": """
for x, y in batches:
    step(x, y)
net.eval()
net.drop.train()
with torch.no_grad():
    samples = torch.stack([net(batches[0][0]).softmax(1) for _ in range(8)])
print(samples.var(0).mean())
""",
    "a teacher that follows the student, both in training mode": """
import copy
teacher = copy.deepcopy(net).requires_grad_(False)
for x, y in batches:
    with torch.no_grad():
        target = teacher(x).softmax(1)
    loss = F.cross_entropy(net(x), y) + F.mse_loss(net(x).softmax(1), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for old, new in zip(teacher.parameters(), net.parameters()):
            old.mul_(0.9).add_(new, alpha=0.1)
""",
    "statistics recomputed in training mode": """
for x, y in batches:
    step(x, y)
net.train()
with torch.no_grad():
    for x, _ in batches:
        net(x)
net.eval()
""",
    "training accuracy from the output that was trained on": """
hits = 0
for x, y in batches:
    out = net(x)
    loss = F.cross_entropy(out, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    hits += (out.argmax(1) == y).sum().item()
""",
}


@pytest.mark.parametrize("name", WRONG)
def test_the_cause_is_named(name: str) -> None:
    code, body = WRONG[name]
    program = NET + body
    diagnosis = findings(program, MODES)
    assert not diagnosis.failed
    told = [(one.code, one.place.line, one.title) for one in diagnosis.findings]
    assert (code, blamed_line(program)) in {(found, line) for found, line, _ in told}, told


@pytest.mark.parametrize("name", RIGHT)
def test_a_correct_program_is_left_alone(name: str) -> None:
    diagnosis = findings(NET + RIGHT[name], MODES)
    assert not diagnosis.failed
    loud = [one for one in diagnosis.findings if one.severity is not Severity.NOTE]
    assert not loud, [(one.code, one.place.line, one.title) for one in loud]
