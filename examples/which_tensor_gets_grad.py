"""Which of x, y, z and loss has its `.grad` filled by the backward?"""

import torch

x = torch.tensor(1.0, requires_grad=True)
y = torch.tensor(2.0)
z = x * y
loss = z
loss.backward()
print(x.grad)
