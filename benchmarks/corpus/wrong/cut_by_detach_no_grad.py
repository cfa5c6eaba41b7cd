# rule: cut-by-detach
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv1d(1, 4, 3)
        self.out = nn.Linear(4, 2)

    def features(self, x):
        with torch.no_grad():  # <- here
            return torch.relu(self.stem(x)).mean(-1)

    def forward(self, x):
        return self.out(self.features(x))


torch.manual_seed(0)
model = Net()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
signal, label = torch.randn(20, 1, 10), torch.randint(0, 2, (20,))
for _ in range(4):
    model.zero_grad()
    nn.functional.cross_entropy(model(signal), label).backward()
    opt.step()
