# rule: clip-at-wrong-moment
import torch
from torch import nn

torch.manual_seed(0)
lstm, head = nn.LSTM(3, 8, batch_first=True), nn.Linear(8, 1)
parameters = list(lstm.parameters()) + list(head.parameters())
optimizer = torch.optim.SGD(parameters, lr=0.1)
x = torch.randn(8, 10, 3)
y = x.sum((1, 2)).unsqueeze(1)
for _ in range(6):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(head(lstm(x)[0][:, -1]), y)
    loss.backward()
    optimizer.step()
    nn.utils.clip_grad_norm_(parameters, 0.25)  # <- here
