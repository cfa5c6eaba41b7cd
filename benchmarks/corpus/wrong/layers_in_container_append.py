# rule: layers-in-container
import torch
import torch.nn as nn
import torch.nn.functional as F


class Deep(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = []  # <- here
        for a, b in zip(sizes, sizes[1:]):
            self.layers.append(nn.Linear(a, b))
        self.final = nn.Linear(sizes[-1], 2)

    def forward(self, x):
        for layer in self.layers:
            x = F.elu(layer(x))
        return self.final(x)


torch.manual_seed(0)
model = Deep([4, 8, 8])
optimizer = torch.optim.Adam(model.parameters())
for _ in range(4):
    x, y = torch.randn(12, 4), torch.randint(0, 2, (12,))
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
