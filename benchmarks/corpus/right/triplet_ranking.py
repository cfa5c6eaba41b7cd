"""Metric learning with triplets, and a pairwise ranking loss on scores beside it."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
embed = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 4))
scorer = nn.Linear(4, 1)
optimizer = torch.optim.SGD(list(embed.parameters()) + list(scorer.parameters()), lr=0.05)
triplet = nn.TripletMarginLoss(margin=1.0)
ranking = nn.MarginRankingLoss(margin=0.5)
centres = torch.randn(4, 5) * 1.5


def sample(kinds):
    return centres[kinds] + 0.3 * torch.randn(len(kinds), 5)


losses = []
for step in range(60):
    kinds = torch.randint(0, 4, (24,))
    others = (kinds + torch.randint(1, 4, (24,))) % 4
    anchor, positive, negative = embed(sample(kinds)), embed(sample(kinds)), embed(sample(others))
    left, right = scorer(anchor).squeeze(1), scorer(negative).squeeze(1)
    order = (kinds > others).float() * 2 - 1
    loss = triplet(F.normalize(anchor, dim=1), F.normalize(positive, dim=1), F.normalize(negative, dim=1))
    loss = loss + ranking(left, right, order)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses[0], losses[-1])
assert sum(losses[-5:]) < 0.6 * sum(losses[:5])
