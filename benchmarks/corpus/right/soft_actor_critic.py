"""Soft actor-critic in small: rsample for the actor, twin critics with Polyak targets, a learned temperature."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal

torch.manual_seed(0)


def mlp(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, 24), nn.ReLU(), nn.Linear(24, outputs))


actor, q1, q2 = mlp(2, 2), mlp(3, 1), mlp(3, 1)
q1_target, q2_target = copy.deepcopy(q1), copy.deepcopy(q2)
log_alpha = torch.zeros(1, requires_grad=True)
actor_optimizer = torch.optim.Adam(actor.parameters(), lr=1e-2)
q_optimizer = torch.optim.Adam(list(q1.parameters()) + list(q2.parameters()), lr=1e-2)
alpha_optimizer = torch.optim.Adam([log_alpha], lr=1e-2)


def act(state):
    mean, log_std = actor(state).chunk(2, dim=-1)
    distribution = Normal(mean, log_std.clamp(-5, 1).exp())
    raw = distribution.rsample()
    log_prob = distribution.log_prob(raw) - 2 * (0.6931 - raw - F.softplus(-2 * raw))
    return torch.tanh(raw), log_prob


rewards = []
for step in range(60):
    state, after = torch.randn(32, 2), torch.randn(32, 2)
    with torch.no_grad():
        action, _ = act(state)
        reward = -(action - torch.tanh(state[:, :1])).abs()
        next_action, next_log_prob = act(after)
        joint = torch.cat([after, next_action], dim=1)
        q_next = torch.min(q1_target(joint), q2_target(joint)) - log_alpha.exp() * next_log_prob
        target = reward + 0.5 * q_next
    joint = torch.cat([state, action], dim=1)
    q_loss = F.mse_loss(q1(joint), target) + F.mse_loss(q2(joint), target)
    q_optimizer.zero_grad()
    q_loss.backward()
    q_optimizer.step()

    new_action, log_prob = act(state)
    joint = torch.cat([state, new_action], dim=1)
    q = torch.min(q1(joint), q2(joint))
    actor_loss = (log_alpha.exp().detach() * log_prob - q).mean()
    actor_optimizer.zero_grad()
    actor_loss.backward()
    actor_optimizer.step()

    alpha_loss = -(log_alpha * (log_prob - 1.0).detach()).mean()
    alpha_optimizer.zero_grad()
    alpha_loss.backward()
    alpha_optimizer.step()
    with torch.no_grad():
        for net, target_net in ((q1, q1_target), (q2, q2_target)):
            for p, pt in zip(net.parameters(), target_net.parameters()):
                pt.mul_(0.95).add_(0.05 * p)
    rewards.append(reward.mean().item())
print(rewards[0], rewards[-1])
assert sum(rewards[-10:]) > 0.9 * sum(rewards[:10])
