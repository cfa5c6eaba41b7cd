"""Message passing on a graph: index_add sums the messages of edges into nodes."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class GraphLayer(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.message = nn.Linear(inputs, outputs)
        self.self_loop = nn.Linear(inputs, outputs)

    def forward(self, x, source, target):
        messages = self.message(x[source])
        summed = torch.zeros(x.size(0), messages.size(1)).index_add(0, target, messages)
        degree = torch.bincount(target, minlength=x.size(0)).clamp(min=1).unsqueeze(1)
        return self.self_loop(x) + summed / degree


class GNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = GraphLayer(4, 16), GraphLayer(16, 2)

    def forward(self, x, source, target):
        return self.second(F.relu(self.first(x, source, target)), source, target)


torch.manual_seed(0)
nodes = 40
community = torch.arange(nodes) % 2
source, target = torch.randint(0, nodes, (2, 300))
keep = (community[source] == community[target]) | (torch.rand(300) < 0.1)
source, target = source[keep], target[keep]
x = torch.randn(nodes, 4)
x[:, 0] += community * 1.0
train_mask = torch.rand(nodes) < 0.5

model = GNN()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=5e-4)
losses = []
for epoch in range(40):
    optimizer.zero_grad()
    out = model(x, source, target)
    loss = F.cross_entropy(out[train_mask], community[train_mask])
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses[0], losses[-1])
assert losses[-1] < 0.5 * losses[0]
