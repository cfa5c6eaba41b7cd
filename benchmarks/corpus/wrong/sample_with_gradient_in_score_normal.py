# rule: sample-with-gradient-in-score
import torch
from torch.distributions import Normal

torch.manual_seed(0)
mean = torch.zeros(1, requires_grad=True)
log_std = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.Adam([mean, log_std], lr=0.05)
for step in range(6):
    policy = Normal(mean, log_std.exp())
    actions = policy.rsample((32,))  # <- here
    rewards = -(actions.detach() - 2.0) ** 2
    loss = -(policy.log_prob(actions) * (rewards - rewards.mean())).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
