# rule: gradient-not-reset
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(40, 3), torch.randn(40, 1)), batch_size=8)
net = nn.Linear(3, 1)
sgd = torch.optim.SGD(net.parameters(), lr=0.01)
for epoch in range(3):
    sgd.zero_grad()
    for inputs, targets in loader:
        loss = nn.functional.mse_loss(net(inputs), targets)
        loss.backward()  # <- here
        sgd.step()
