"""A physics-informed network: u'' = -sin(x) by two derivatives of a smooth network, and the boundary's values."""
import torch
import torch.nn as nn

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
net = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)

x = torch.linspace(0, torch.pi, 24).unsqueeze(1).requires_grad_(True)
boundary = torch.tensor([[0.0], [torch.pi]])


def derivative(y, x):
    return torch.autograd.grad(y, x, grad_outputs=torch.ones_like(y), create_graph=True)[0]


losses = []
for step in range(80):
    optimizer.zero_grad()
    u = net(x)
    u_x = derivative(u, x)
    u_xx = derivative(u_x, x)
    residual = (u_xx + torch.sin(x)).pow(2).mean()
    edges = net(boundary).pow(2).mean()
    loss = residual + 10 * edges
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if step % 20 == 0:
        print(step, residual.item(), edges.item())
assert losses[-1] < 0.3 * losses[0]
