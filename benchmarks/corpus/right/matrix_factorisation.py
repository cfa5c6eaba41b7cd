"""Recommendations by factors: sparse embeddings with SparseAdam, dense biases with Adam."""
import torch
from torch import nn


class Factors(nn.Module):
    def __init__(self, users, items, width):
        super().__init__()
        self.user = nn.Embedding(users, width, sparse=True)
        self.item = nn.Embedding(items, width, sparse=True)
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, users, items):
        return (self.user(users) * self.item(items)).sum(dim=1) + self.bias


torch.manual_seed(0)
model = Factors(20, 15, 4)
users, items = torch.randint(0, 20, (200,)), torch.randint(0, 15, (200,))
truth = torch.randn(20, 2) @ torch.randn(2, 15)
ratings = truth[users, items]
sparse = torch.optim.SparseAdam([model.user.weight, model.item.weight], lr=3e-2)
dense = torch.optim.Adam([model.bias], lr=3e-2)
losses = []
for epoch in range(10):
    for rows in torch.randperm(200).split(50):
        sparse.zero_grad()
        dense.zero_grad()
        loss = nn.functional.mse_loss(model(users[rows], items[rows]), ratings[rows])
        loss.backward()
        sparse.step()
        dense.step()
        losses.append(loss.item())
print(losses[0], losses[-1])
assert losses[-1] < 0.7 * losses[0]
