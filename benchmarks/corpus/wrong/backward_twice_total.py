# rule: backward-twice
import torch
import torch.nn as nn


def step(model, batch, target):
    out = model(batch)
    reconstruction = (out - target).abs().mean()
    reconstruction.backward(retain_graph=True)
    total = reconstruction + 0.01 * out.pow(2).mean()
    total.backward()  # <- here
    return total.item()


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 3))
opt = torch.optim.Adam(net.parameters())
data = torch.randn(12, 3)
for _ in range(6):
    opt.zero_grad()
    step(net, data, data)
    opt.step()
