"""Faults of shapes and losses in other shapes than the rules' own examples, and correct programs of many styles."""

from __future__ import annotations

import pytest
from running import blamed_line, findings

from whygrad.rules.finding import Severity
from whygrad.rules.registry import rules

LOSSES = [rule for rule in rules() if rule.code.startswith("WG4")]

START = """
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
x, y = torch.randn(8, 4), torch.arange(8) % 3
"""

WRONG = {
    "softmax in forward, criterion as a module": (
        "WG401",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        return F.softmax(self.fc(x), dim=1)  # <- here

criterion = nn.CrossEntropyLoss()
criterion(Net()(x), y).backward()
""",
    ),
    "softmax layer as an attribute": (
        "WG401",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)
        self.activation = nn.Softmax(dim=-1)  # <- here

    def forward(self, x):
        return self.activation(self.fc(x))

net = Net()
F.cross_entropy(net(x), y).backward()
""",
    ),
    "sigmoid outputs into cross entropy": (
        "WG401",
        """
model = nn.Sequential(nn.Linear(4, 3), nn.Sigmoid())  # <- here
nn.CrossEntropyLoss()(model(x), y).backward()
""",
    ),
    "sigmoid before BCEWithLogitsLoss": (
        "WG401",
        """
model = nn.Sequential(
    nn.Linear(4, 1),
    nn.Sigmoid(),  # <- here
)
nn.BCEWithLogitsLoss()(model(x), torch.ones(8, 1)).backward()
""",
    ),
    "evaluated only": (
        "WG401",
        """
model = nn.Linear(4, 3)
with torch.no_grad():
    probabilities = torch.softmax(model(x), dim=1)  # <- here
    print(F.cross_entropy(probabilities, y))
""",
    ),
    "raw logits into NLLLoss": (
        "WG402",
        """
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
loss = nn.NLLLoss()(model(x) + 3, y)
loss = nn.NLLLoss()(model[2](torch.ones(8, 8) * 9), y)  # <- here
loss.backward()
""",
    ),
    "kl_div with log-probabilities as target": (
        "WG402",
        """
model, teacher = nn.Linear(4, 3), nn.Linear(4, 3).requires_grad_(False)
p, q = F.log_softmax(model(x), 1), F.log_softmax(teacher(x), 1)
F.kl_div(p, q, reduction="batchmean").backward()  # <- here
""",
    ),
    "kl_div with its arguments exchanged": (
        "WG402",
        """
model, teacher = nn.Linear(4, 3), nn.Linear(4, 3).requires_grad_(False)
p, q = F.softmax(model(x), 1), F.log_softmax(teacher(x), 1)
F.kl_div(q, p, reduction="batchmean").backward()  # <- here
""",
    ),
    "BCELoss of logits": (
        "WG402",
        """
model = nn.Linear(4, 1)
loss = nn.BCELoss()(model(x) * 9, torch.ones(8, 1))  # <- here
loss.backward()
""",
    ),
    "softmax module over one output": (
        "WG403",
        """
model = nn.Sequential(nn.Linear(4, 1), nn.Softmax(dim=1))  # <- here
F.mse_loss(model(x), torch.zeros(8, 1)).backward()
""",
    ),
    "layer norm of one feature": (
        "WG403",
        """
model = nn.Sequential(nn.Linear(4, 1), nn.LayerNorm(1))  # <- here
F.mse_loss(model(x), torch.zeros(8, 1)).backward()
""",
    ),
    "log softmax module over the batch": (
        "WG404",
        """
model = nn.Sequential(nn.Linear(4, 3), nn.LogSoftmax(dim=0))  # <- here
nn.NLLLoss()(model(x), y).backward()
""",
    ),
    "attention over the heads": (
        "WG404",
        """
q, k, v = (torch.randn(2, 3, 5, 4, requires_grad=True) for _ in range(3))
scores = q @ k.transpose(-2, -1)
weights = scores.softmax(dim=1)  # <- here
torch.matmul(weights, v).sum().backward()
""",
    ),
    "penalty by hand over one dimension": (
        "WG405",
        """
critic = nn.Conv1d(2, 1, 3)
points = torch.randn(6, 2, 5, requires_grad=True)
grad = torch.autograd.grad(critic(points).sum(), points, create_graph=True)[0]
norm = (grad ** 2).sum(1).sqrt()  # <- here
((1 - norm) ** 2).mean().backward()
""",
    ),
    "recurrent layer averaged over time": (
        "WG406",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 6, num_layers=2)  # <- here
        self.out = nn.Linear(6, 3)

    def forward(self, x):
        h, _ = self.rnn(x)
        return self.out(h.mean(dim=1))

F.cross_entropy(Net()(torch.randn(8, 5, 4)), y).backward()
""",
    ),
    "attention whose class token is selected": (
        "WG406",
        """
attention, out = nn.MultiheadAttention(4, 2), nn.Linear(4, 3)  # <- here
tokens = torch.randn(8, 5, 4)
h, _ = attention(tokens, tokens, tokens)
F.cross_entropy(out(h[:, 0]), y).backward()
""",
    ),
    "last sample instead of last step": (
        "WG406",
        """
rnn, out = nn.LSTM(4, 6, batch_first=True), nn.Linear(6, 3)
h, _ = rnn(torch.randn(8, 8, 4))
F.cross_entropy(out(h[-1]), y).backward()  # <- here
""",
    ),
    "bidirectional, time first": (
        "WG407",
        """
rnn, out = nn.LSTM(4, 6, bidirectional=True), nn.Linear(12, 3)
h, _ = rnn(torch.randn(5, 8, 4))
F.cross_entropy(out(h[-1]), y).backward()  # <- here
""",
    ),
    "bidirectional, at the end of each sequence": (
        "WG407",
        """
rnn, out = nn.GRU(4, 6, bidirectional=True, batch_first=True), nn.Linear(12, 3)
lengths = torch.tensor([5, 3, 4, 5, 2, 5, 3, 4])
h, _ = rnn(torch.randn(8, 5, 4))
last = h[torch.arange(8), lengths - 1]  # <- here
F.cross_entropy(out(last), y).backward()
""",
    ),
    "heads split by view alone": (
        "WG408",
        """
project = nn.Linear(6, 6)
heads = project(torch.randn(2, 5, 6)).view(2, 3, 5, 2)  # <- here
heads.pow(2).sum().backward()
""",
    ),
    "image features to a sequence by reshape": (
        "WG408",
        """
conv = nn.Conv2d(1, 6, 3)
features = conv(torch.randn(2, 1, 7, 10))
sequence = features.reshape(2, 8, 30)  # <- here
nn.Linear(30, 3)(sequence).sum().backward()
""",
    ),
    "policy gradient with a column of returns": (
        "WG412",
        """
policy = nn.Linear(4, 3)
dist = torch.distributions.Categorical(logits=policy(x))
action, returns = dist.sample(), torch.randn(8, 1)
loss = -(dist.log_prob(action) * returns).mean()  # <- here
loss.backward()
""",
    ),
    "accuracy of a column": (
        "WG412",
        """
model, labels = nn.Linear(4, 1), torch.ones(8)
hits = ((model(x) > 0).float() == labels).float().mean()  # <- here
print(hits.item())
""",
    ),
    "smooth L1 loss module": (
        "WG412",
        """
model, criterion = nn.Linear(4, 1), nn.SmoothL1Loss()
criterion(model(x), torch.randn(8)).backward()  # <- here
""",
    ),
    "mask after the reduction": (
        "WG417",
        """
model, criterion = nn.Linear(4, 1), nn.MSELoss()
mask = torch.tensor([1.0, 1, 0, 0, 1, 1, 0, 1])
loss = (mask * criterion(model(x).squeeze(1), torch.ones(8))).sum() / mask.sum()  # <- here
loss.backward()
""",
    ),
    "reduction none": (
        "WG414",
        """
criterion = nn.CrossEntropyLoss(reduction="none")  # <- here
loss = criterion(nn.Linear(4, 3)(x), y)
loss.backward()
""",
    ),
    "all ignored, as a module": (
        "WG411",
        """
criterion = nn.CrossEntropyLoss(ignore_index=0)
loss = criterion(nn.Linear(4, 3)(x), torch.zeros(8, dtype=torch.long))  # <- here
loss.backward()
""",
    ),
}

RIGHT = {
    "variational autoencoder": """
encoder, decoder = nn.Linear(4, 4), nn.Linear(2, 4)
mean, log_var = encoder(x).chunk(2, dim=1)
z = mean + torch.randn_like(mean) * (0.5 * log_var).exp()
kl = -0.5 * (1 + log_var - mean.pow(2) - log_var.exp()).sum(1).mean()
(F.mse_loss(decoder(z), x, reduction="sum") / 8 + kl).backward()
""",
    "attention by hand, heads split and joined": """
qkv, out = nn.Linear(8, 24), nn.Linear(8, 3)
tokens = torch.randn(2, 5, 8)
q, k, v = (one.view(2, 5, 2, 4).transpose(1, 2) for one in qkv(tokens).chunk(3, dim=-1))
weights = F.softmax(q @ k.transpose(-2, -1) / 2, dim=-1)
joined = (weights @ v).transpose(1, 2).reshape(2, 5, 8)
F.cross_entropy(out(joined).mean(1), torch.tensor([0, 2])).backward()
""",
    "contrastive loss with all pairs": """
encoder = nn.Linear(4, 6)
a, b = F.normalize(encoder(x), dim=1), F.normalize(encoder(x + 0.1), dim=1)
same = (y[:, None] == y).float()
logits = a @ b.T / 0.1
log_prob = F.log_softmax(logits, dim=1)
(-(same * log_prob).sum(1) / same.sum(1)).mean().backward()
""",
    "WGAN-GP on images": """
critic = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(8, 1))
mixed = torch.randn(6, 1, 4, 4, requires_grad=True)
grad = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)[0]
((grad.reshape(6, -1).norm(2, dim=1) - 1) ** 2).mean().backward()
""",
    "distillation": """
student, teacher = nn.Linear(4, 3), nn.Linear(4, 3).requires_grad_(False)
soft = F.kl_div(F.log_softmax(student(x) / 2, 1), F.softmax(teacher(x) / 2, 1), reduction="batchmean") * 4
(soft + F.cross_entropy(student(x), y)).backward()
""",
    "recurrent, time first": """
rnn, out = nn.LSTM(4, 6), nn.Linear(6, 3)
h, (state, _) = rnn(torch.randn(5, 8, 4))
(F.cross_entropy(out(state[-1]), y) + F.cross_entropy(out(h[-1]), y)).backward()
""",
    "language model, batch first": """
embed, rnn, out = nn.Embedding(11, 4, padding_idx=0), nn.GRU(4, 6, batch_first=True), nn.Linear(6, 11)
tokens = torch.randint(1, 11, (3, 7))
h, _ = rnn(embed(tokens[:, :-1]))
F.cross_entropy(out(h).flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=0).backward()
""",
    "tagger that uses every step of both directions": """
rnn, out = nn.LSTM(4, 6, batch_first=True, bidirectional=True), nn.Linear(12, 3)
h, _ = rnn(torch.randn(2, 5, 4))
F.cross_entropy(out(h).transpose(1, 2), torch.randint(0, 3, (2, 5))).backward()
""",
    "weighted per-sample loss": """
model, weight = nn.Linear(4, 3), torch.rand(8)
loss = F.cross_entropy(model(x), y, reduction="none")
((loss * weight).sum() / weight.sum() + 0.1 * loss.mean()).backward()
""",
    "mixture of experts gated by a softmax": """
gate, experts = nn.Linear(4, 2), nn.Linear(4, 6)
mixed = torch.bmm(F.softmax(gate(x), dim=1).unsqueeze(1), experts(x).view(8, 2, 3)).squeeze(1)
F.cross_entropy(mixed, y).backward()
""",
    "actor critic": """
actor, critic = nn.Linear(4, 3), nn.Linear(4, 1)
dist = torch.distributions.Categorical(logits=actor(x))
action, returns = dist.sample(), torch.randn(8)
value = critic(x).squeeze(-1)
advantage = (returns - value).detach()
loss = -(dist.log_prob(action) * advantage).mean() + (returns - value).pow(2).mean()
(loss - 0.01 * dist.entropy().mean()).backward()
""",
    "physics-informed": """
net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
t = torch.linspace(0, 1, 6).view(-1, 1).requires_grad_(True)
u = net(t)
du = torch.autograd.grad(u, t, torch.ones_like(u), create_graph=True)[0]
((du + u).pow(2).mean() + (net(torch.zeros(1, 1)) - 1).pow(2).mean()).backward()
""",
    "patches of an image": """
image = torch.randn(2, 3, 8, 8, requires_grad=True)
patches = image.unfold(2, 4, 4).unfold(3, 4, 4).reshape(2, 3, 4, 16).permute(0, 2, 1, 3).flatten(2)
nn.Linear(48, 3)(patches).sum().backward()
""",
    "segmentation": """
net = nn.Conv2d(3, 4, 3, padding=1)
logits = net(torch.randn(2, 3, 6, 6))
loss = F.cross_entropy(logits, torch.randint(0, 4, (2, 6, 6)))
dice = 1 - logits.softmax(1)[:, 1].mean()
(loss + dice).backward()
""",
}


@pytest.mark.parametrize("name", WRONG)
def test_the_cause_is_named(name: str) -> None:
    code, body = WRONG[name]
    program = START + body
    diagnosis = findings(program, LOSSES)
    assert not diagnosis.failed
    told = [(one.code, one.place.line, one.title) for one in diagnosis.findings]
    assert (code, blamed_line(program)) in {(found, line) for found, line, _ in told}, told


@pytest.mark.parametrize("name", RIGHT)
def test_a_correct_program_is_left_alone(name: str) -> None:
    diagnosis = findings(START + RIGHT[name], LOSSES)
    assert not diagnosis.failed
    loud = [one for one in diagnosis.findings if one.severity is not Severity.NOTE]
    assert not loud, [(one.code, one.place.line, one.title) for one in loud]
