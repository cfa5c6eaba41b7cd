"""A residual network of stages, made in a loop; the last block's scale starts at zero, as is usual."""
import torch
import torch.nn as nn


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm1d(channels),
            nn.ReLU(inplace=True),
            nn.Conv1d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm1d(channels),
        )
        nn.init.zeros_(self.body[-1].weight)

    def forward(self, x):
        return torch.relu(x + self.body(x))


def make_stage(channels, depth):
    return nn.Sequential(*[Residual(channels) for _ in range(depth)])


torch.manual_seed(0)
model = nn.Sequential(nn.Conv1d(1, 8, 3, padding=1), make_stage(8, 2), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(8, 2))
for module in model.modules():
    if isinstance(module, nn.Conv1d):
        nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
signal = torch.randn(48, 1, 16) * 0.3
label = torch.arange(48) % 2
signal[label == 1] += torch.sin(torch.arange(16) * 1.5)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
losses = []
model.train()
for step in range(40):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(signal), label)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses[0], losses[-1])
assert losses[-1] < 0.3 * losses[0]
