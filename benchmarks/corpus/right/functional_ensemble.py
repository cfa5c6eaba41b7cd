"""An ensemble by vmap and functional_call: stacked parameters, one optimizer for all members."""
import copy

import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

torch.manual_seed(0)
members = [nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1)) for _ in range(4)]
params, buffers = stack_module_state(members)
params = {name: p.detach().requires_grad_() for name, p in params.items()}
base = copy.deepcopy(members[0]).to("meta")


def call(p, b, x):
    return functional_call(base, (p, b), (x,))


optimizer = torch.optim.Adam(params.values(), lr=1e-2)
x = torch.randn(40, 3)
y = x[:, :1] * x[:, 1:2]
losses = []
for _ in range(30):
    predictions = vmap(call, in_dims=(0, 0, None))(params, buffers, x)
    loss = (predictions - y.unsqueeze(0)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses[0], losses[-1])
assert losses[-1] < 0.8 * losses[0]
