# rule: gradient-used-twice
import torch
from torch import nn


class Learner:
    def __init__(self):
        self.trunk = nn.Linear(4, 8)
        self.policy, self.value = nn.Linear(8, 2), nn.Linear(8, 1)
        self.policy_optimizer = torch.optim.Adam([*self.trunk.parameters(), *self.policy.parameters()], lr=1e-2)
        self.value_optimizer = torch.optim.Adam([*self.trunk.parameters(), *self.value.parameters()], lr=1e-2)  # <- here

    def learn(self, x, y, v):
        h = torch.tanh(self.trunk(x))
        loss = nn.functional.cross_entropy(self.policy(h), y) + nn.functional.mse_loss(self.value(h), v)
        self.policy_optimizer.zero_grad()
        self.value_optimizer.zero_grad()
        loss.backward()
        self.policy_optimizer.step()
        self.value_optimizer.step()


torch.manual_seed(0)
learner = Learner()
for _ in range(5):
    x = torch.randn(16, 4)
    learner.learn(x, (x[:, 0] > 0).long(), x[:, 1:2])
