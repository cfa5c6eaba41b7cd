# rule: sample-with-gradient-in-score
import torch
import torch.nn as nn
import torch.distributions as D


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 16)
        self.mu = nn.Linear(16, 2)

    def forward(self, state):
        return D.Independent(D.Normal(self.mu(torch.tanh(self.body(state))), torch.tensor(0.3)), 1)


torch.manual_seed(0)
actor = Actor()
opt = torch.optim.SGD(actor.parameters(), lr=0.1)
for _ in range(5):
    state = torch.randn(20, 3)
    distribution = actor(state)
    action = distribution.rsample()  # <- here
    with torch.no_grad():
        advantage = -(action - state[:, :2]).pow(2).sum(1)
        advantage = advantage - advantage.mean()
    loss = -(distribution.log_prob(action) * advantage).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
