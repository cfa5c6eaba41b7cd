# rule: optimizer-rebuilt
import torch
from torch import nn


def run_epoch(model, batches):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)  # <- here
    for x, y in batches:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()


torch.manual_seed(0)
model = nn.Linear(3, 1)
batches = [(torch.randn(8, 3), torch.randn(8, 1)) for _ in range(3)]
for _ in range(5):
    run_epoch(model, batches)
