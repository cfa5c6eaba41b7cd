"""REINFORCE on a bandit with states: log-probabilities of the sampled actions times the advantage."""
import torch
import torch.nn as nn
import torch.optim as optim
from torch.distributions import Categorical


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(3, 16)
        self.affine2 = nn.Linear(16, 3)

    def forward(self, state):
        return torch.softmax(self.affine2(torch.relu(self.affine1(state))), dim=-1)


def episode(policy, length=12):
    log_probs, rewards = [], []
    for _ in range(length):
        right = int(torch.randint(0, 3, ()))
        state = torch.eye(3)[right]
        distribution = Categorical(policy(state))
        action = distribution.sample()
        log_probs.append(distribution.log_prob(action))
        rewards.append(1.0 if action.item() == right else 0.0)
    return log_probs, rewards


torch.manual_seed(0)
policy = Policy()
optimizer = optim.Adam(policy.parameters(), lr=3e-2)
baseline = 0.0
returns = []
for number in range(50):
    log_probs, rewards = episode(policy)
    advantages = torch.tensor(rewards) - baseline
    policy_loss = -(torch.stack(log_probs) * advantages).sum()
    optimizer.zero_grad()
    policy_loss.backward()
    optimizer.step()
    baseline = 0.9 * baseline + 0.1 * sum(rewards) / len(rewards)
    returns.append(sum(rewards))
print(returns[:5], returns[-5:])
assert sum(returns[-10:]) > 1.4 * sum(returns[:10])
