# rule: graph-kept-alive
import torch
import torch.nn as nn


def epoch(net, opt, batches):
    total = 0
    for x, y in batches:
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total = total + loss  # <- here
    return total / len(batches)


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
opt = torch.optim.Adam(net.parameters())
batches = [(torch.randn(6, 4), torch.randint(0, 2, (6,))) for _ in range(25)]
for _ in range(2):
    print(epoch(net, opt, batches))
