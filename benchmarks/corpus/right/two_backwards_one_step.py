"""Two losses of one trunk backpropagated one after the other: both are meant, the first keeps the graph."""
import torch
from torch import nn

torch.manual_seed(0)
trunk, head_a, head_b = nn.Linear(4, 16), nn.Linear(16, 1), nn.Linear(16, 2)
optimizer = torch.optim.Adam([*trunk.parameters(), *head_a.parameters(), *head_b.parameters()], lr=1e-2)
x = torch.randn(60, 4)
a, b = x[:, :1] * 2, (x[:, 1] > 0).long()
history = []
for step in range(40):
    features = torch.relu(trunk(x))
    loss_a = nn.functional.mse_loss(head_a(features), a)
    loss_b = nn.functional.cross_entropy(head_b(features), b)
    optimizer.zero_grad()
    loss_a.backward(retain_graph=True)
    loss_b.backward()
    optimizer.step()
    history.append(loss_a.item() + loss_b.item())
print(history[0], history[-1])
assert history[-1] < 0.5 * history[0]
