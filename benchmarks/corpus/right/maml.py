"""MAML, second order: fast weights from autograd.grad with create_graph, the query loss backpropagated through."""
import torch
import torch.nn.functional as F

torch.manual_seed(0)


def forward(weights, x):
    w1, b1, w2, b2 = weights
    return torch.tanh(x @ w1 + b1) @ w2 + b2


def sample_task():
    slope, shift = torch.rand(1) * 2 + 0.5, torch.rand(1) - 0.5
    x = torch.rand(20, 1) * 4 - 2
    y = slope * x + shift
    return x[:10], y[:10], x[10:], y[10:]


def adapt(weights, x, y, steps=2, inner_lr=0.05):
    fast = list(weights)
    for _ in range(steps):
        loss = F.mse_loss(forward(fast, x), y)
        grads = torch.autograd.grad(loss, fast, create_graph=True)
        fast = [w - inner_lr * g for w, g in zip(fast, grads)]
    return fast


theta = [
    (0.5 * torch.randn(1, 16)).requires_grad_(),
    torch.zeros(16, requires_grad=True),
    (0.5 * torch.randn(16, 1)).requires_grad_(),
    torch.zeros(1, requires_grad=True),
]
meta_optimizer = torch.optim.Adam(theta, lr=2e-2)
losses = []
for iteration in range(30):
    meta_optimizer.zero_grad()
    meta_loss = 0.0
    for _ in range(3):
        support_x, support_y, query_x, query_y = sample_task()
        fast = adapt(theta, support_x, support_y)
        meta_loss = meta_loss + F.mse_loss(forward(fast, query_x), query_y)
    meta_loss = meta_loss / 3
    meta_loss.backward()
    meta_optimizer.step()
    losses.append(meta_loss.item())
print(losses[0], losses[-1])
assert sum(losses[-5:]) < 0.5 * sum(losses[:5])
