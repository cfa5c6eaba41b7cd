"""Torch work in a file beside the program."""

import warnings

import torch
import torch.nn.functional as F


class Scale(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.factor = torch.nn.Parameter(torch.linspace(0.5, 1.5, size))

    def forward(self, x):
        return x * self.factor + 1


def broadcast():
    return F.mse_loss(torch.ones(4, 1), torch.ones(4))


def scalar(w):
    return float(w) + float(w * 2)


def warn_caller():
    warnings.warn("for the caller", FutureWarning, stacklevel=2)


def load(name):
    return __import__(name)


def train(model, data, steps, lr=0.1):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    for step in range(steps):
        optimizer.zero_grad()
        loss = model(data).square().mean()
        loss.backward()
        optimizer.step()
    return loss.item()
