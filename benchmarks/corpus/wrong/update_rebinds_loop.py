# rule: update-rebinds
import torch

torch.manual_seed(0)
x = torch.randn(20)
y = 3 * x
w = torch.tensor(0.0, requires_grad=True)
for step in range(3):
    loss = ((w * x - y) ** 2).mean()
    loss.backward()
    if w.grad is None:
        print("no gradient in step", step)
        break
    w = w - 0.1 * w.grad  # <- here
