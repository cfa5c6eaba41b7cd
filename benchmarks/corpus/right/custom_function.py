"""A custom autograd.Function with a checked backward, trained through."""
import torch
from torch import nn


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, beta):
        s = torch.sigmoid(beta * x)
        ctx.save_for_backward(x, beta, s)
        return x * s

    @staticmethod
    def backward(ctx, grad_output):
        x, beta, s = ctx.saved_tensors
        slope = s * (1 - s)
        return grad_output * (s + beta * x * slope), (grad_output * x * x * slope).sum()


assert torch.autograd.gradcheck(
    Swish.apply, (torch.randn(4, dtype=torch.float64, requires_grad=True), torch.tensor(1.5, dtype=torch.float64, requires_grad=True))
)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 20), nn.Linear(20, 1)
        self.beta = nn.Parameter(torch.tensor(1.0))

    def forward(self, x):
        return self.b(Swish.apply(self.a(x), self.beta))


torch.manual_seed(0)
net = Net()
x = torch.randn(50, 3)
y = (x**2).sum(1, keepdim=True)
optimizer = torch.optim.Adam(net.parameters(), lr=2e-2)
losses = []
for _ in range(50):
    optimizer.zero_grad()
    loss = (net(x) - y).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses[0], losses[-1])
assert losses[-1] < 0.4 * losses[0]
