# rule: gradient-not-reset
import torch

torch.manual_seed(0)
x = torch.randn(30, 1)
y = 3 * x + 1
a = torch.zeros(1, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
for step in range(10):
    loss = ((a * x + b - y) ** 2).mean()
    loss.backward()  # <- here
    with torch.no_grad():
        a -= 0.05 * a.grad
        b -= 0.05 * b.grad
    print(step, loss.item())
