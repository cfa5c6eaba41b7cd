# rule: infinite-slope
import torch
from torch import nn

torch.manual_seed(0)
embed = nn.Linear(3, 4)
a = torch.randn(6, 3)
b = a.clone()
b[2:] += 1.0
difference = embed(a) - embed(b)
distance = torch.sqrt((difference**2).sum(1))  # <- here
loss = distance.mean()
loss.backward()
print(loss.item(), embed.weight.grad)
