"""K-fold cross-validation: a new model and a new optimizer a fold, as it must be."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(60, 4)
y = x @ torch.tensor([[1.0], [-2.0], [0.5], [0.0]]) + 0.1 * torch.randn(60, 1)
folds = torch.arange(60).chunk(3)


def fit(train, held_out, lr):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for epoch in range(25):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x[train]), y[train])
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        return nn.functional.mse_loss(model(x[held_out]), y[held_out]).item()


scores = {}
for lr in (0.05, 0.2):
    scores[lr] = [fit(torch.cat(folds[:i] + folds[i + 1 :]), folds[i], lr) for i in range(3)]
print(scores)
assert max(scores[0.2]) < 0.2
