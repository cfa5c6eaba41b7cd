# rule: softmax-over-wrong-dimension
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
        self.out = nn.Linear(4, 1)

    def forward(self, x):
        scores = self.q(x) @ self.k(x).transpose(1, 2) / 2.0
        weights = torch.softmax(scores, dim=0)  # <- here
        return self.out((weights @ self.v(x)).mean(1))


torch.manual_seed(0)
net = Attention()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(5):
    x = torch.randn(8, 6, 4)
    opt.zero_grad()
    nn.functional.mse_loss(net(x), x.mean((1, 2)).unsqueeze(1)).backward()
    opt.step()
