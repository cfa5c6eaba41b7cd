# rule: softmax-before-loss
import torch
import torch.nn as nn

torch.manual_seed(0)
net = nn.Sequential(
    nn.Linear(3, 16),
    nn.ReLU(),
    nn.Linear(16, 1),
    nn.Sigmoid(),  # <- here
)
criterion = nn.BCEWithLogitsLoss()
opt = torch.optim.SGD(net.parameters(), lr=0.5)
x = torch.randn(50, 3)
y = (x[:, :1] > 0).float()
for _ in range(15):
    opt.zero_grad()
    criterion(net(x), y).backward()
    opt.step()
