"""SimSiam: no momentum encoder, the target branch detached, one encoder for both views."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 8))
predictor = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 8))
optimizer = torch.optim.SGD([*encoder.parameters(), *predictor.parameters()], lr=0.1, momentum=0.9)


def distance(p, z):
    return -F.cosine_similarity(p, z.detach(), dim=-1).mean()


data = torch.randn(64, 8)
losses = []
for step in range(40):
    x1, x2 = data + 0.2 * torch.randn_like(data), data + 0.2 * torch.randn_like(data)
    z1, z2 = encoder(x1), encoder(x2)
    loss = (distance(predictor(z1), z2) + distance(predictor(z2), z1)) / 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses[0], losses[-1])
assert losses[-1] < losses[0] - 0.3
