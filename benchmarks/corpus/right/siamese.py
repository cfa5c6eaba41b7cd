"""A siamese network: one encoder called on both inputs, a contrastive loss with a margin."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 4))

    def forward(self, left, right):
        return self.encoder(left), self.encoder(right)


def contrastive(a, b, same, margin=1.5):
    distance = F.pairwise_distance(a, b)
    return (same * distance.pow(2) + (1 - same) * F.relu(margin - distance).pow(2)).mean()


torch.manual_seed(0)
centres = torch.randn(3, 6) * 2
model = Siamese()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
losses = []
for step in range(50):
    kinds_a, kinds_b = torch.randint(0, 3, (32,)), torch.randint(0, 3, (32,))
    a = centres[kinds_a] + 0.5 * torch.randn(32, 6)
    b = centres[kinds_b] + 0.5 * torch.randn(32, 6)
    loss = contrastive(*model(a, b), (kinds_a == kinds_b).float())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses[0], losses[-1])
assert sum(losses[-5:]) < 0.6 * sum(losses[:5])
