# rule: dropout-ignores-mode
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        drop = nn.Dropout(0.3)  # <- here
        return drop(torch.relu(self.linear(x)))


torch.manual_seed(0)
model = nn.Sequential(Block(8), Block(8), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(24, 8), torch.randint(0, 2, (24,))
for epoch in range(3):
    model.train()
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
    model.eval()
    with torch.inference_mode():
        print((model(x).argmax(1) == y).float().mean().item())
