# rule: cut-by-jump
import torch

torch.manual_seed(0)
threshold = torch.nn.Parameter(torch.tensor(0.3))
gain = torch.nn.Parameter(torch.tensor(1.0))
optimizer = torch.optim.Adam([threshold, gain], lr=0.05)
x = torch.randn(50)
y = 2.0 * (x > 0.8).float()
for step in range(6):
    mask = (x > threshold).float()  # <- here
    loss = ((gain * mask - y) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(threshold.item(), threshold.grad)
