# rule: dtype-mismatch
import torch
from torch import nn


def load():
    time = torch.arange(0, 10, dtype=torch.float64)  # <- here
    return torch.stack([time.sin(), time.cos()], 1)


rnn = nn.GRU(2, 4, batch_first=True)
out, _ = rnn(load().unsqueeze(0))
out.sum().backward()
