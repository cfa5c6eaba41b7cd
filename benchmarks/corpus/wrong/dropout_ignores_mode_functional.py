# rule: dropout-ignores-mode
import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 20), nn.Linear(20, 1)

    def forward(self, x):
        x = F.relu(self.a(x))
        x = F.dropout(x, p=0.4)  # <- here
        return self.b(x)


torch.manual_seed(0)
net = Net()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
x, y = torch.randn(30, 4), torch.randn(30, 1)
for _ in range(5):
    net.train()
    opt.zero_grad()
    F.mse_loss(net(x), y).backward()
    opt.step()
    net.eval()
    with torch.no_grad():
        print(F.mse_loss(net(x), y).item())
