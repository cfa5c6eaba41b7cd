# rule: gradient-not-reset
import torch
from torch import nn

torch.manual_seed(0)
encoder, head = nn.Linear(4, 8), nn.Linear(8, 1)
opt_encoder = torch.optim.SGD(encoder.parameters(), lr=0.01)
opt_head = torch.optim.SGD(head.parameters(), lr=0.01)
x, y = torch.randn(24, 4), torch.randn(24, 1)
for epoch in range(8):
    opt_head.zero_grad()
    loss = ((head(torch.tanh(encoder(x))) - y) ** 2).mean()
    loss.backward()  # <- here
    opt_encoder.step()
    opt_head.step()
