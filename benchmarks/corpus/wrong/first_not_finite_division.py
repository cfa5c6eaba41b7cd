# rule: first-not-finite
import torch
import torch.nn as nn


class Normalised(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2)

    def forward(self, x):
        x = (x - x.mean(0)) / x.std(0)  # <- here
        return self.linear(x)


torch.manual_seed(0)
net = Normalised()
opt = torch.optim.Adam(net.parameters())
data = torch.randn(12, 3)
data[:, 1] = 4.0
for _ in range(2):
    opt.zero_grad()
    loss = net(data).pow(2).mean()
    loss.backward()
    opt.step()
    print(loss.item())
