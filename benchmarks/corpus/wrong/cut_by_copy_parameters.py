# rule: cut-by-copy
import torch

torch.manual_seed(0)
scale = torch.nn.Parameter(torch.tensor(0.5))
offset = torch.nn.Parameter(torch.tensor(0.1))
optimizer = torch.optim.SGD([scale, offset], lr=0.1)
x = torch.randn(20)
y = 2 * x + 1
for step in range(5):
    coefficients = torch.tensor([scale.item(), 1.0])  # <- here
    prediction = coefficients[0] * x + offset
    loss = (prediction - y).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(scale.grad, offset.grad)
