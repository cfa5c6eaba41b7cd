# rule: gradient-not-reset
import torch
from torch import nn


class Trainer:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.criterion = nn.CrossEntropyLoss()

    def train_step(self, x, y):
        loss = self.criterion(self.model(x), y)
        loss.backward()  # <- here
        self.optimizer.step()
        return loss.item()


torch.manual_seed(0)
trainer = Trainer()
x, y = torch.randn(32, 4), torch.randint(0, 3, (32,))
for epoch in range(12):
    print(epoch, trainer.train_step(x, y))
