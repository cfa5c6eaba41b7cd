# rule: hidden-data-write
import torch

torch.manual_seed(0)
w = torch.randn(4, requires_grad=True)
hidden = torch.tanh(w * 2)
out = hidden * hidden
hidden.data.mul_(3)  # <- here
out.sum().backward()
print(w.grad)
