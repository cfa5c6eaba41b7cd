# rule: frozen-statistics-move
import torch
from torch import nn


class FineTuned(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv1d(1, 4, 3), nn.BatchNorm1d(4), nn.ReLU())
        self.features.requires_grad_(False).eval()
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        return self.head(self.features(x).mean(-1))


torch.manual_seed(0)
model = FineTuned()
sgd = torch.optim.SGD(model.head.parameters(), lr=0.1)
for epoch in range(3):
    model.train()  # <- here
    for _ in range(3):
        x, y = torch.randn(12, 1, 10) * 2 + 1, torch.randint(0, 3, (12,))
        sgd.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        sgd.step()
