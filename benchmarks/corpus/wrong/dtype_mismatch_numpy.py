# rule: dtype-mismatch
import numpy as np
import torch
from torch import nn

model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
data = np.random.default_rng(0).normal(size=(10, 3))
x = torch.tensor(data)  # <- here
print(model(x).mean())
