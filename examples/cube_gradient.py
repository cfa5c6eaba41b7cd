"""What does `.grad` hold after one backward? The derivative of x^3 is 3*x^2, so 12 at x = 2."""

import torch

x = torch.tensor(2.0, requires_grad=True)
y = x**3
loss = y
loss.backward()
print(x.grad.item())
