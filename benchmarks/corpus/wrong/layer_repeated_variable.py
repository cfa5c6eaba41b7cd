# rule: layer-repeated
import torch
import torch.nn as nn

torch.manual_seed(0)
block = nn.Sequential(nn.Linear(6, 6), nn.Tanh())
layers = nn.ModuleList([block for _ in range(4)])  # <- here
head = nn.Linear(6, 2)
optimizer = torch.optim.SGD([*layers.parameters(), *head.parameters()], lr=0.1)
x, y = torch.randn(24, 6), torch.randint(0, 2, (24,))
for step in range(4):
    h = x
    for layer in layers:
        h = h + layer(h)
    loss = nn.functional.cross_entropy(head(h), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
