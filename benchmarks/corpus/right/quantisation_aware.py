"""Quantisation-aware training: rounded weights in the forward, straight-through gradients in the backward."""
import torch
from torch import nn


def quantise(w, bits=4):
    scale = w.detach().abs().max() / (2 ** (bits - 1) - 1)
    rounded = torch.round(w / scale) * scale
    return w + (rounded - w).detach()


class QuantLinear(nn.Linear):
    def forward(self, x):
        return nn.functional.linear(x, quantise(self.weight), self.bias)


class RoundSTE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.round(x * 8) / 8

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = QuantLinear(5, 24), QuantLinear(24, 1)

    def forward(self, x):
        return self.second(RoundSTE.apply(torch.relu(self.first(x))))


torch.manual_seed(0)
x = torch.randn(80, 5)
y = (x[:, :1] - 0.5 * x[:, 1:2]).abs()
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
losses = []
for epoch in range(12):
    for batch in torch.randperm(80).split(20):
        loss = nn.functional.mse_loss(net(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
print(losses[0], losses[-1])
assert sum(losses[-4:]) < 0.6 * sum(losses[:4])
