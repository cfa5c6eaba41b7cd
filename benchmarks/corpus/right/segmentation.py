"""Segmentation with an ignored border, cross-entropy on pixels and a soft Dice term."""
import torch
import torch.nn as nn
import torch.nn.functional as F

IGNORE = 255


def dice(logits, labels):
    valid = labels != IGNORE
    probabilities = logits.softmax(dim=1)[:, 1][valid]
    truth = (labels[valid] == 1).float()
    overlap = (probabilities * truth).sum()
    return 1 - (2 * overlap + 1) / (probabilities.sum() + truth.sum() + 1)


torch.manual_seed(0)
images = torch.randn(16, 1, 10, 10) * 0.3
labels = torch.zeros(16, 10, 10, dtype=torch.long)
for i in range(16):
    top, left = torch.randint(1, 6, (2,)).tolist()
    labels[i, top : top + 3, left : left + 3] = 1
images[:, 0] += labels.float()
labels[:, 0, :] = labels[:, -1, :] = IGNORE

model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 2, 3, padding=1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
losses = []
for step in range(40):
    rows = torch.randint(0, 16, (8,))
    logits = model(images[rows])
    loss = F.cross_entropy(logits, labels[rows], ignore_index=IGNORE) + dice(logits, labels[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses[0], losses[-1])
assert losses[-1] < 0.5 * losses[0]
