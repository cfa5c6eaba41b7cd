# rule: leaf-written-in-place
import torch

torch.manual_seed(0)
w = torch.zeros(2, requires_grad=True)
x, y = torch.randn(10, 2), torch.randn(10)
for _ in range(3):
    loss = (x @ w - y).pow(2).mean()
    loss.backward()
    w -= 0.1 * w.grad  # <- here
    w.grad.zero_()
