# rule: clip-at-wrong-moment
import torch
import torch.nn as nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(5, 10), nn.ReLU(), nn.Linear(10, 1))
weights = net.parameters()  # <- here
optimizer = torch.optim.SGD(weights, lr=0.05)
x = torch.randn(16, 5)
y = 20 * x[:, :1]
for step in range(6):
    optimizer.zero_grad()
    loss = (net(x) - y).pow(2).mean()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(weights, max_norm=1.0)
    optimizer.step()
    print(step, loss.item(), float(norm))
