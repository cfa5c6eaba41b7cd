# rule: batch-and-time-exchanged
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 8)  # <- here
        self.out = nn.Linear(8, 1)

    def forward(self, x):
        hidden, _ = self.lstm(x)
        return self.out(hidden[:, -1])


torch.manual_seed(0)
model = Model()
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
x = torch.randn(16, 7, 3)
y = x.sum((1, 2)).unsqueeze(1)
for _ in range(4):
    opt.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    opt.step()
