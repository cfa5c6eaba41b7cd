"""Features of a frozen backbone are computed once without gradients; only the head sees the loop."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
backbone = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 16)).eval()
x = torch.randn(80, 12)
y = (x[:, 0] > 0).long()


@torch.no_grad()
def extract(loader):
    return torch.cat([backbone(inputs) for inputs, in loader])


features = extract(DataLoader(TensorDataset(x), batch_size=20))
head = nn.Linear(16, 2)
optimizer = torch.optim.SGD(head.parameters(), lr=1.0)
losses = []
for epoch in range(15):
    running = 0.0
    for inputs, targets in DataLoader(TensorDataset(features, y), batch_size=20, shuffle=True):
        loss = nn.functional.cross_entropy(head(inputs), targets)
        head.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        running += loss.item()
    losses.append(running)
print(losses[0], losses[-1])
assert losses[-1] < 0.9 * losses[0]
