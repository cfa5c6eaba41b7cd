# rule: saved-value-written
import torch
import torch.nn as nn

torch.manual_seed(0)
G = nn.Linear(2, 2)
D = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
opt_g, opt_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
fake = G(torch.randn(8, 2))
verdict = D(fake)
loss_d = verdict.mean() - D(torch.randn(8, 2)).mean()
loss_g = -verdict.mean()
opt_d.zero_grad()
loss_d.backward(retain_graph=True)
opt_d.step()  # <- here
opt_g.zero_grad()
loss_g.backward()
opt_g.step()
