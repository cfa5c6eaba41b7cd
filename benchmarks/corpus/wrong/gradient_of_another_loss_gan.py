# rule: gradient-of-another-loss
import torch
from torch import nn

torch.manual_seed(0)
G, D = nn.Linear(3, 2), nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(), nn.Linear(8, 1))
g_opt, d_opt = torch.optim.SGD(G.parameters(), lr=0.05), torch.optim.SGD(D.parameters(), lr=0.05)
bce = nn.BCEWithLogitsLoss()
for step in range(8):
    g_opt.zero_grad()
    fake = G(torch.randn(16, 3))
    g_loss = bce(D(fake), torch.ones(16, 1))
    g_loss.backward()
    g_opt.step()

    real = torch.randn(16, 2) + 2
    d_loss = bce(D(real), torch.ones(16, 1)) + bce(D(fake.detach()), torch.zeros(16, 1))
    d_loss.backward()  # <- here
    d_opt.step()
    d_opt.zero_grad()
