# rule: not-a-leaf
import torch

torch.manual_seed(0)
w = torch.randn(3, requires_grad=True) * 0.1  # <- here
x = torch.randn(10, 3)
for _ in range(2):
    loss = (x @ w.detach().requires_grad_()).pow(2).mean() if False else (x @ w).pow(2).mean()
    loss.backward(retain_graph=True)
    print(w.grad)
