# rule: frozen-statistics-move
import torch
import torch.nn as nn

torch.manual_seed(0)
backbone = nn.Sequential(nn.Linear(5, 16), nn.BatchNorm1d(16), nn.ReLU())
for parameter in backbone.parameters():
    parameter.requires_grad = False
model = nn.Sequential(backbone, nn.Linear(16, 2))
optimizer = torch.optim.Adam(model[1].parameters(), lr=1e-2)
x, y = torch.randn(40, 5) + 2, torch.randint(0, 2, (40,))
model.train()  # <- here
for step in range(6):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
