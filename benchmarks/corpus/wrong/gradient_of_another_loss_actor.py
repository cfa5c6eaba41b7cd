# rule: gradient-of-another-loss
import torch
import torch.nn as nn


class Agent:
    def __init__(self):
        self.actor = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))
        self.critic = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
        self.actor_optim = torch.optim.Adam(self.actor.parameters(), lr=1e-3)
        self.critic_optim = torch.optim.Adam(self.critic.parameters(), lr=1e-3)

    def learn(self, state, reward):
        self.actor_optim.zero_grad()
        action = self.actor(state)
        actor_loss = -self.critic(torch.cat([state, action], 1)).mean()
        actor_loss.backward()
        self.actor_optim.step()

        value = self.critic(torch.cat([state, action.detach()], 1))
        critic_loss = (value - reward).pow(2).mean()
        critic_loss.backward()  # <- here
        self.critic_optim.step()
        self.critic_optim.zero_grad()


torch.manual_seed(0)
agent = Agent()
for _ in range(10):
    state = torch.randn(12, 3)
    agent.learn(state, state.sum(1, keepdim=True))
