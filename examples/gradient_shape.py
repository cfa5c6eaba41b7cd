"""The gradient of a tensor has the tensor's own shape: here 2*x for each of the three elements."""

import torch

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x**2
loss = y.sum()
loss.backward()
print(x.grad)
