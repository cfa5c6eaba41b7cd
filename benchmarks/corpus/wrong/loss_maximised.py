# rule: loss-maximised
import torch
from torch import nn

torch.manual_seed(0)
mean = nn.Parameter(torch.zeros(1))
log_std = nn.Parameter(torch.zeros(1))
opt = torch.optim.SGD([mean, log_std], lr=0.01)
data = torch.randn(50) + 2
for _ in range(8):
    log_likelihood = torch.distributions.Normal(mean, log_std.exp()).log_prob(data).mean()
    loss = log_likelihood  # <- here
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("loss", loss.item())
