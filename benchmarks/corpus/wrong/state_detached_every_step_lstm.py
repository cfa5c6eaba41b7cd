# rule: state-detached-every-step
import torch
from torch import nn


class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(2, 12)
        self.readout = nn.Linear(12, 1)

    def forward(self, sequence):
        h = torch.zeros(sequence.size(1), 12)
        c = torch.zeros(sequence.size(1), 12)
        for x in sequence:
            h, c = self.cell(x, (h, c))
            h, c = h.detach(), c.detach()  # <- here
        return self.readout(h)


torch.manual_seed(0)
net = Memory()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(6):
    x = torch.randn(7, 16, 2)
    opt.zero_grad()
    nn.functional.mse_loss(net(x), x[0, :, :1]).backward()
    opt.step()
