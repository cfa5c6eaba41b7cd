"""DQN: replay memory, target network copied now and then, targets without gradient, Huber loss."""
import copy
import random
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
random.seed(0)
STATES, GAMMA = 5, 0.9


def move(state, action):
    """A corridor: the reward waits at the right end."""
    after = max(0, state - 1) if action == 0 else state + 1
    done = after == STATES - 1
    return after, float(done), done


def one_hot(states):
    return F.one_hot(torch.as_tensor(states), STATES).float()


online = nn.Sequential(nn.Linear(STATES, 24), nn.ReLU(), nn.Linear(24, 2))
target = copy.deepcopy(online)
target.requires_grad_(False)
optimizer = torch.optim.Adam(online.parameters(), lr=1e-2)
memory = deque(maxlen=500)

state = 0
for step in range(200):
    if random.random() < 0.3:
        action = random.randrange(2)
    else:
        with torch.no_grad():
            action = int(online(one_hot([state])).argmax(1))
    after, reward, done = move(state, action)
    memory.append((state, action, reward, after, done))
    state = 0 if done else after
    if len(memory) < 32 or step % 2:
        continue
    states, actions, rewards, afters, dones = zip(*random.sample(memory, 32))
    q = online(one_hot(states)).gather(1, torch.tensor(actions).unsqueeze(1)).squeeze(1)
    with torch.no_grad():
        best = target(one_hot(afters)).max(1).values
        wanted = torch.tensor(rewards) + GAMMA * best * (1 - torch.tensor(dones, dtype=torch.float))
    loss = F.smooth_l1_loss(q, wanted)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(online.parameters(), 10)
    optimizer.step()
    if step % 20 == 0:
        target.load_state_dict(online.state_dict())

with torch.no_grad():
    policy = online(one_hot(list(range(STATES - 1)))).argmax(1)
print(policy.tolist(), loss.item())
assert policy.tolist() == [1] * (STATES - 1)
