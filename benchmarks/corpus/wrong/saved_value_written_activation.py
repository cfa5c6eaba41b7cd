# rule: saved-value-written
import torch
from torch import nn

torch.manual_seed(0)
layer, head = nn.Linear(3, 5), nn.Linear(5, 1)
x = torch.randn(6, 3)
h = torch.sigmoid(layer(x))
score = head(h)
h += 0.1  # <- here
loss = score.mean() + h.mean()
loss.backward()
