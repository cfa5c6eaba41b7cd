"""PCGrad: a gradient a task by autograd.grad, conflicts projected away, the result put into .grad by hand."""
import torch
from torch import nn

torch.manual_seed(0)
trunk, heads = nn.Linear(5, 16), nn.ModuleList([nn.Linear(16, 1), nn.Linear(16, 1)])
parameters = [*trunk.parameters(), *heads.parameters()]
optimizer = torch.optim.Adam(parameters, lr=1e-2)
x = torch.randn(50, 5)
targets = [x[:, :1] + x[:, 1:2], x[:, 2:3] - x[:, 1:2]]
history = []
for step in range(50):
    features = torch.tanh(trunk(x))
    losses = [nn.functional.mse_loss(head(features), t) for head, t in zip(heads, targets)]
    gradients = []
    for loss in losses:
        found = torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True)
        gradients.append([torch.zeros_like(p) if g is None else g for p, g in zip(parameters, found)])
    a, b = (torch.cat([g.flatten() for g in one]) for one in gradients)
    dot = torch.dot(a, b)
    if dot < 0:
        a = a - dot / b.norm() ** 2 * b
    merged, start = a + b, 0
    for p in parameters:
        p.grad = merged[start : start + p.numel()].view_as(p).clone()
        start += p.numel()
    optimizer.step()
    history.append(sum(loss.item() for loss in losses))
print(history[0], history[-1])
assert history[-1] < 0.3 * history[0]
