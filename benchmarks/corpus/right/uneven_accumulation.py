"""Accumulation over micro-batches of unequal length: token losses summed, divided by the window's count of tokens."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
PAD = -100
model = nn.Sequential(nn.Embedding(10, 16), nn.Linear(16, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-2)


def micro_batch():
    tokens = torch.randint(0, 10, (2, 8))
    targets = (tokens + 1) % 10
    for row, length in enumerate(torch.randint(2, 9, (2,))):
        targets[row, length:] = PAD
    return tokens, targets


losses = []
for step in range(30):
    window = [micro_batch() for _ in range(3)]
    count = sum((targets != PAD).sum() for _, targets in window)
    optimizer.zero_grad()
    total = 0.0
    for tokens, targets in window:
        logits = model(tokens)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=PAD, reduction="sum") / count
        loss.backward()
        total += loss.item()
    optimizer.step()
    losses.append(total)
print(losses[0], losses[-1])
assert losses[-1] < 0.5 * losses[0]
