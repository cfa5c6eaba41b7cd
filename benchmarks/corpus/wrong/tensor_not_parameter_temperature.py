# rule: tensor-not-parameter
import torch
import torch.nn as nn


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.temperature = torch.ones(1, requires_grad=True)  # <- here

    def forward(self, x):
        return self.linear(x) / self.temperature


torch.manual_seed(0)
model = Scaled()
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
x, y = torch.randn(30, 3), torch.randint(0, 3, (30,))
for _ in range(5):
    opt.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    opt.step()
