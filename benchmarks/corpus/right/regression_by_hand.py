"""Linear regression without an optimizer: the update is written out under no_grad."""
import torch

torch.manual_seed(3)
true_w, true_b = torch.tensor([1.5, -2.0]), 0.7
x = torch.randn(50, 2)
y = x @ true_w + true_b

w = torch.zeros(2, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
lr = 0.1

losses = []
for step in range(50):
    prediction = x @ w + b
    loss = ((prediction - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w -= lr * w.grad
        b -= lr * b.grad
    w.grad.zero_()
    b.grad = None
    losses.append(loss.item())

print(w.tolist(), b.item())
assert losses[-1] < 1e-3 * losses[0]
