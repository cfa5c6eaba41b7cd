# rule: frozen-moves
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)
x, y = torch.randn(20, 4), torch.randn(20, 1)
for epoch in range(8):
    if epoch == 4:
        for p in model[0].parameters():
            p.requires_grad = False  # <- here
        optimizer.zero_grad(set_to_none=False)
    optimizer.zero_grad(set_to_none=False)
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
