"""Several losses on one trunk, weighted by learned uncertainties, one backward."""
import torch
import torch.nn as nn


class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(5, 24), nn.ReLU())
        self.heads = nn.ModuleDict({"value": nn.Linear(24, 1), "kind": nn.Linear(24, 3)})
        self.log_variances = nn.Parameter(torch.zeros(2))

    def forward(self, x):
        features = self.trunk(x)
        return {name: head(features) for name, head in self.heads.items()}


torch.manual_seed(0)
x = torch.randn(72, 5)
value, kind = x[:, :1] * 2 - x[:, 1:2], x[:, 2:].argmax(1)
model = MultiTask()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
history = []
for step in range(50):
    out = model(x)
    losses = torch.stack([
        nn.functional.mse_loss(out["value"], value),
        nn.functional.cross_entropy(out["kind"], kind),
    ])
    total = (losses * torch.exp(-model.log_variances) + 0.5 * model.log_variances).sum()
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    history.append(losses.detach().tolist())
print(history[0], history[-1])
assert history[-1][0] < 0.5 * history[0][0]
assert history[-1][1] < 0.5 * history[0][1]
