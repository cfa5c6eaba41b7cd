# rule: gradient-not-reset
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 2))
x, y = torch.randn(16, 6), torch.randint(0, 2, (16,))
delta = torch.zeros_like(x, requires_grad=True)
for step in range(6):
    model.zero_grad()
    loss = F.cross_entropy(model(x + delta), y)
    loss.backward()  # <- here
    with torch.no_grad():
        delta += 0.01 * delta.grad.sign()
        delta.clamp_(-0.1, 0.1)
    print(step, loss.item(), delta.grad.norm().item())
