"""Multiple instance learning: one bag at a time, the softmax over the instances of the bag (dimension 0)."""
import torch
from torch import nn


class Pooling(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        self.classifier = nn.Linear(4, 1)

    def forward(self, bag):
        weights = torch.softmax(self.score(bag), dim=0)
        return self.classifier((weights * bag).sum(0))


torch.manual_seed(0)
bags, labels = [], []
for i in range(16):
    bag = torch.randn(int(torch.randint(3, 8, ())), 4)
    if i % 2:
        bag[0, 0] += 4
    bags.append(bag)
    labels.append(torch.tensor([float(i % 2)]))
model = Pooling()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
epoch_losses = []
for epoch in range(10):
    total = 0.0
    for bag, label in zip(bags, labels):
        loss = nn.functional.binary_cross_entropy_with_logits(model(bag), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    epoch_losses.append(total / len(bags))
print(epoch_losses[0], epoch_losses[-1])
assert epoch_losses[-1] < 0.7 * epoch_losses[0]
