# rule: custom-backward-wrong
import torch
from torch import nn


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x  # <- here


torch.manual_seed(0)
w = nn.Parameter(torch.randn(4))
opt = torch.optim.SGD([w], lr=0.1)
for _ in range(4):
    loss = Square.apply(w).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
