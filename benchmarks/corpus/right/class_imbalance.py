"""Imbalanced classes: class weights in batches, pos_weight, label smoothing and a weighted sampler."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

torch.manual_seed(0)
y = (torch.rand(120) < 0.15).long()
x = torch.randn(120, 4) + 1.2 * y.unsqueeze(1)
counts = torch.bincount(y).float()

sampler = WeightedRandomSampler((1 / counts)[y], num_samples=120)
loader = DataLoader(TensorDataset(x, y), batch_size=24, sampler=sampler)
binary = nn.Linear(4, 1)
multi = nn.Linear(4, 2)
optimizer = torch.optim.Adam([*binary.parameters(), *multi.parameters()], lr=5e-2)
bce = nn.BCEWithLogitsLoss(pos_weight=counts[0] / counts[1])
weighted = nn.CrossEntropyLoss(weight=counts.sum() / (2 * counts), label_smoothing=0.05)

epoch_losses = []
for epoch in range(10):
    total = 0.0
    for start in range(0, 120, 24):
        rows = slice(start, start + 24)
        optimizer.zero_grad()
        loss = bce(binary(x[rows]).squeeze(1), y[rows].float()) + weighted(multi(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
        total += loss.item()
    epoch_losses.append(total)
for inputs, targets in loader:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(multi(inputs), targets)
    loss.backward()
    optimizer.step()
print(epoch_losses[0], epoch_losses[-1])
assert epoch_losses[-1] < 0.8 * epoch_losses[0]
