"""A mixture of experts: top-k routing, the gate's gradient through the kept weights, a load-balancing term."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class MoE(nn.Module):
    def __init__(self, width=8, experts=4, k=2):
        super().__init__()
        self.k = k
        self.gate = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(
            [nn.Sequential(nn.Linear(width, 16), nn.ReLU(), nn.Linear(16, width)) for _ in range(experts)]
        )

    def forward(self, x):
        probabilities = F.softmax(self.gate(x), dim=-1)
        weights, chosen = probabilities.topk(self.k, dim=-1)
        weights = weights / weights.sum(dim=-1, keepdim=True)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows, slot = torch.where(chosen == number)
            if rows.numel():
                out = out.index_add(0, rows, expert(x[rows]) * weights[rows, slot].unsqueeze(-1))
        share = F.one_hot(chosen[:, 0], len(self.experts)).float().mean(0)
        balance = len(self.experts) * (share * probabilities.mean(0)).sum()
        return out, balance


torch.manual_seed(0)
model, head = MoE(), nn.Linear(8, 1)
optimizer = torch.optim.Adam([{"params": model.parameters()}, {"params": head.parameters(), "lr": 2e-2}], lr=1e-2)
x = torch.randn(64, 8)
y = torch.where(x[:, :1] > 0, x[:, 1:2], -x[:, 2:3])
losses = []
for step in range(40):
    hidden, balance = model(x)
    task = F.mse_loss(head(hidden + x), y)
    loss = task + 0.01 * balance
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(task.item())
print(losses[0], losses[-1])
assert losses[-1] < 0.5 * losses[0]
