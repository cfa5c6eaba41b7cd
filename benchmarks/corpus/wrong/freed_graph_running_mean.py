# rule: freed-graph
import torch
import torch.nn as nn


class Centre(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 2)
        self.centre = torch.zeros(2)

    def loss(self, x):
        z = self.net(x)
        self.centre = 0.9 * self.centre + 0.1 * z.mean(0)  # <- here
        return (z - self.centre).pow(2).sum(1).mean()


torch.manual_seed(0)
model = Centre()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    opt.zero_grad()
    model.loss(torch.randn(8, 3)).backward()
    opt.step()
