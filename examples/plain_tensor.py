"""Backward from a tensor that asks for no gradient: it raises before anything can print None."""

import torch

x = torch.tensor(4.0)
y = x**2
loss = y
loss.backward()
print(x.grad)
