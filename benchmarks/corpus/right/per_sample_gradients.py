"""Private SGD: per-sample gradients by torch.func, clipped one by one, averaged and put into .grad by hand."""
import torch
from torch import nn
from torch.func import functional_call, grad, vmap

torch.manual_seed(0)
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
x = torch.randn(32, 4)
y = (x[:, 0] > 0).long()


def sample_loss(params, inputs, target):
    logits = functional_call(model, params, (inputs.unsqueeze(0),))
    return nn.functional.cross_entropy(logits, target.unsqueeze(0))


losses = []
for step in range(30):
    params = {name: p.detach() for name, p in model.named_parameters()}
    grads = vmap(grad(sample_loss), in_dims=(None, 0, 0))(params, x, y)
    norms = torch.stack([g.flatten(1).norm(dim=1) for g in grads.values()]).norm(dim=0)
    factor = (1.0 / (norms + 1e-6)).clamp(max=1.0)
    optimizer.zero_grad()
    for name, p in model.named_parameters():
        g = grads[name]
        p.grad = (g * factor.view(-1, *[1] * (g.dim() - 1))).mean(0)
    optimizer.step()
    with torch.no_grad():
        losses.append(nn.functional.cross_entropy(model(x), y).item())
print(losses[0], losses[-1])
assert losses[-1] < 0.7 * losses[0]
