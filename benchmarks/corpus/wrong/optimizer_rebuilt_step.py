# rule: optimizer-rebuilt
import torch
import torch.nn as nn


class Learner:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        self.lr = 0.01

    def learn(self, x, y):
        opt = torch.optim.SGD(self.net.parameters(), lr=self.lr, momentum=0.9)  # <- here
        loss = (self.net(x) - y).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        self.lr *= 0.99
        return loss.item()


torch.manual_seed(0)
learner = Learner()
for _ in range(8):
    x = torch.randn(10, 4)
    learner.learn(x, x[:, :1])
