"""Actor-critic with a shared trunk: the advantage is detached in the policy's term, entropy is rewarded."""
import torch
from torch import nn
from torch.distributions import Categorical


class ActorCritic(nn.Module):
    def __init__(self, states, actions):
        super().__init__()
        self.trunk = nn.Linear(states, 32)
        self.actor = nn.Linear(32, actions)
        self.critic = nn.Linear(32, 1)

    def forward(self, state):
        features = torch.tanh(self.trunk(state))
        return Categorical(logits=self.actor(features)), self.critic(features).squeeze(-1)


def rollout(model, batch):
    right = torch.randint(0, 4, (batch,))
    states = torch.eye(4)[right]
    distribution, values = model(states)
    actions = distribution.sample()
    rewards = (actions == right).float()
    return distribution, values, actions, rewards


torch.manual_seed(0)
model = ActorCritic(4, 4)
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-2)
mean_rewards = []
for update in range(60):
    distribution, values, actions, rewards = rollout(model, 32)
    advantages = rewards - values
    policy_loss = -(distribution.log_prob(actions) * advantages.detach()).mean()
    value_loss = advantages.pow(2).mean()
    entropy = distribution.entropy().mean()
    loss = policy_loss + 0.5 * value_loss - 0.01 * entropy
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    mean_rewards.append(rewards.mean().item())
print(mean_rewards[0], mean_rewards[-1])
assert sum(mean_rewards[-5:]) > 1.5 * sum(mean_rewards[:5])
