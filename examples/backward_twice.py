"""Two backwards through one graph: the second does not double the gradient, it raises."""

import torch

x = torch.tensor(3.0, requires_grad=True)
y = x**2
loss = y
loss.backward()
loss.backward()
print(x.grad.item())
