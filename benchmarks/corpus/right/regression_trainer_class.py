"""A regression in a Trainer class that owns the model, the optimizer and the loop."""
import torch
from torch import nn


class Trainer:
    def __init__(self, model, lr):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=1e-4)
        self.loss_fn = nn.MSELoss()
        self.history = []

    def step(self, x, y):
        self.optimizer.zero_grad()
        prediction = self.model(x).squeeze(-1)
        loss = self.loss_fn(prediction, y)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def fit(self, x, y, epochs, batch_size):
        for epoch in range(epochs):
            order = torch.randperm(len(x))
            running = torch.zeros(())
            for start in range(0, len(x), batch_size):
                batch = order[start : start + batch_size]
                running += self.step(x[batch], y[batch])
            self.history.append(running.item() * batch_size / len(x))
            if epoch % 5 == 0:
                print(f"epoch {epoch} loss {self.history[-1]:.4f}")


torch.manual_seed(0)
x = torch.rand(64, 1) * 4 - 2
y = torch.sin(2 * x).squeeze(-1) + 0.05 * torch.randn(64)
net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
trainer = Trainer(net, lr=5e-3)
trainer.fit(x, y, epochs=15, batch_size=16)
assert trainer.history[-1] < 0.6 * trainer.history[0]
