"""A hypernetwork writes the weights of a small network for each task; only the hypernetwork has parameters."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Hyper(nn.Module):
    def __init__(self, tasks, hidden=8):
        super().__init__()
        self.hidden = hidden
        self.embedding = nn.Embedding(tasks, 6)
        self.writer = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 3 * hidden + 1))

    def forward(self, task, x):
        weights = self.writer(self.embedding(task))
        w1, b1, w2, b2 = weights.split([self.hidden, self.hidden, self.hidden, 1])
        hidden = torch.tanh(F.linear(x, w1.view(self.hidden, 1), b1))
        return F.linear(hidden, w2.view(1, self.hidden), b2)


torch.manual_seed(0)
hyper = Hyper(tasks=3)
optimizer = torch.optim.Adam(hyper.parameters(), lr=1e-2)
x = torch.linspace(-1, 1, 20).unsqueeze(1)
targets = [torch.sin(3 * x), x**2, -x]
losses = []
for step in range(40):
    optimizer.zero_grad()
    loss = sum(F.mse_loss(hyper(torch.tensor(task), x), y) for task, y in enumerate(targets)) / 3
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses[0], losses[-1])
assert losses[-1] < 0.5 * losses[0]
