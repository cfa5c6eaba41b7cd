# rule: gradient-used-twice
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(4, 6)
        self.decoder = nn.Linear(6, 4)

    def forward(self, x):
        return self.decoder(torch.tanh(self.encoder(x)))


torch.manual_seed(0)
model = Model()
encoder_optimizer = torch.optim.SGD(model.encoder.parameters(), lr=0.1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # <- here
x = torch.randn(16, 4)
for _ in range(6):
    encoder_optimizer.zero_grad()
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), x).backward()
    encoder_optimizer.step()
    optimizer.step()
