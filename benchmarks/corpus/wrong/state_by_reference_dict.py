# rule: state-by-reference
import torch
import torch.nn as nn


class EarlyStopping:
    def __init__(self):
        self.best = float("inf")
        self.kept = {}

    def update(self, value, model):
        if value < self.best:
            self.best = value
            self.kept = {name: p for name, p in model.state_dict().items()}  # <- here


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1))
opt = torch.optim.Adam(net.parameters(), lr=0.1)
stopping = EarlyStopping()
x = torch.randn(16, 3)
for _ in range(8):
    opt.zero_grad()
    loss = (net(x) - x[:, :1]).abs().mean()
    loss.backward()
    stopping.update(loss.item(), net)
    opt.step()
net.load_state_dict(stopping.kept)
