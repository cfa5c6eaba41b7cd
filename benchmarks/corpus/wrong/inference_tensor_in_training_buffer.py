# rule: inference-tensor-in-training
import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.Linear(5, 4)
with torch.inference_mode():  # <- here
    prototypes = encoder(torch.randn(3, 5))
head = nn.Linear(4, 3)
x = torch.randn(10, 5)
scores = head(encoder(x)) * (encoder(x) @ prototypes.T)
scores.mean().backward()
