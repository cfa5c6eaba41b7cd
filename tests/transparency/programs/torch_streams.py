# The random streams, and every bit of the weights, after fifty steps of training.
# transparency: -- mlp
# transparency: -- conv
# transparency: -- lstm
# transparency: -- transformer
# transparency: env=OMP_NUM_THREADS=2 -- many
import random
import sys

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def digest(tensor):
    """Every bit of a tensor: the bytes of its first elements, and an exact checksum of all of them."""
    raw = tensor.detach().contiguous().view(torch.uint8).flatten() if tensor.dim() else tensor.detach().reshape(1).view(torch.uint8)
    weights = torch.arange(1, raw.numel() + 1, dtype=torch.int64)
    return bytes(raw[:16].tolist()).hex(), int((raw.long() * weights).sum())


def streams(title):
    print(title, random.random().hex(), float(np.random.rand()).hex(), float(torch.rand(())).hex(), torch.initial_seed(), digest(torch.get_rng_state()))
    print(np.random.default_rng(3).integers(1000), random.getrandbits(32), torch.randperm(5).tolist(), float(torch.randn(())).hex())


def report(model, optimizer, losses):
    for name, parameter in model.named_parameters():
        print(name, digest(parameter), None if parameter.grad is None else digest(parameter.grad), parameter._version)
    for name, buffer in model.named_buffers():
        print(name, digest(buffer), buffer._version)
    for index, state in optimizer.state_dict()["state"].items():
        print(index, {key: digest(value) if torch.is_tensor(value) else value for key, value in state.items()})
    print("losses", [loss.hex() for loss in losses[::7]], losses[-1])
    print(model.training, {m.training for m in model.modules()}, torch.is_grad_enabled())


def train(model, batch, steps=50, optimizer=None, scheduler=None, clip=None, loss_function=F.cross_entropy):
    optimizer = optimizer or torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-3)
    losses = []
    for step in range(steps):
        x, y = batch(step)
        if step % 10 == 9:
            model.eval()
            with torch.no_grad():
                losses.append(loss_function(model(x), y).item())
            model.train()
        optimizer.zero_grad(set_to_none=step % 2 == 0)
        out = model(x)
        loss = loss_function(out, y)
        if step % 3 == 0:
            (loss / 2).backward(retain_graph=True)
            (loss / 2).backward()
        else:
            loss.backward()
        if clip:
            losses.append(float(nn.utils.clip_grad_norm_(model.parameters(), clip)))
        optimizer.step()
        if scheduler:
            scheduler(optimizer).step()
        losses.append(loss.item())
    report(model, optimizer, losses)


def mlp():
    model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(inplace=True), nn.Dropout(0.3), nn.Linear(16, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 3))
    optimizer = torch.optim.SGD([{"params": model[0].parameters(), "lr": 0.05}, {"params": model[1:].parameters()}], lr=0.1, momentum=0.9, nesterov=True)
    train(model, lambda step: (torch.randn(8, 6), torch.randint(3, (8,))), optimizer=optimizer, clip=1.0)


class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.b = nn.Conv2d(4, 8, 3, stride=2)
        self.head = nn.Linear(8, 2)
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x):
        h = F.relu(self.norm(self.a(x))) + x
        h = F.dropout2d(self.b(h), 0.2, self.training)
        h = h.mean((2, 3)) * self.scale
        return self.head(h)


def conv():
    train(Conv(), lambda step: (torch.randn(4, 1, 9, 9), torch.randint(2, (4,))), clip=0.5)


class LSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 6, padding_idx=0)
        self.lstm = nn.LSTM(6, 8, num_layers=2, dropout=0.2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(16, 11)
        self.head_norm = nn.utils.parametrizations.weight_norm(nn.Linear(11, 11))

    def forward(self, x):
        h, (hidden, cell) = self.lstm(self.embed(x))
        return self.head_norm(self.head(h)).flatten(0, 1)


def lstm():
    train(LSTM(), lambda step: (torch.randint(11, (3, 5)), torch.randint(11, (15,))), optimizer=None, clip=1.0)


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.attention = nn.MultiheadAttention(8, 2, dropout=0.1, batch_first=True)
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, x):
        h = self.encoder(self.embed(x))
        h, _ = self.attention(h, h, h, need_weights=False)
        return self.head(h).flatten(0, 1)


def transformer():
    model = Transformer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=60)
    train(model, lambda step: (torch.randint(11, (2, 5)), torch.randint(11, (10,))), optimizer=optimizer, scheduler=lambda _: scheduler)


def many():
    print(torch.get_num_threads())
    x = torch.randn(64, 200)
    model = nn.Sequential(nn.Linear(200, 300), nn.Tanh(), nn.Linear(300, 5))
    for kind in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop"):
        optimizer = getattr(torch.optim, kind)(model.parameters(), lr=1e-2)
        for step in range(4):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
        print(kind, [digest(p) for p in model.parameters()])
    for extra in ({"foreach": False}, {"foreach": True}, {"fused": True}, {"maximize": True}, {"amsgrad": True}, {"differentiable": False}):
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, **extra)
        model.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        print(extra, [digest(p) for p in model.parameters()])


if __name__ == "__main__":
    for name in sys.argv[1:]:
        torch.manual_seed(7)
        np.random.seed(7)
        random.seed(7)
        globals()[name]()
        streams(name)
