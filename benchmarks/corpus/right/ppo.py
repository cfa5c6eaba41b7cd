"""PPO with a Gaussian policy: old log-probabilities without gradient, clipped ratio, several epochs a rollout."""
import torch
import torch.nn as nn
from torch.distributions import Normal

torch.manual_seed(0)


class GaussianPolicy(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1))
        self.log_std = nn.Parameter(torch.full((1,), -0.5))

    def forward(self, obs):
        return Normal(self.mean(obs), self.log_std.exp())


policy, value = GaussianPolicy(), nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam([*policy.parameters(), *value.parameters()], lr=1e-2)
rewards_seen = []
for iteration in range(15):
    with torch.no_grad():
        obs = torch.randn(64, 2)
        action = policy(obs).sample()
        old_log_prob = policy(obs).log_prob(action)
        reward = -(action - obs.sum(1, keepdim=True)).abs()
        advantage = reward - value(obs)
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    rewards_seen.append(reward.mean().item())
    for _ in range(4):
        distribution = policy(obs)
        ratio = (distribution.log_prob(action) - old_log_prob).exp()
        clipped = ratio.clamp(0.8, 1.2)
        policy_loss = -torch.min(ratio * advantage, clipped * advantage).mean()
        value_loss = (value(obs) - reward).pow(2).mean()
        loss = policy_loss + 0.5 * value_loss - 1e-3 * distribution.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(rewards_seen[0], rewards_seen[-1])
assert rewards_seen[-1] > 0.8 * rewards_seen[0]
