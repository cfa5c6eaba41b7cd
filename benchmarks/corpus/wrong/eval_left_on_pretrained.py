# rule: eval-left-on
import torch
import torch.nn as nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        return self.fc(torch.relu(self.norm(self.conv(x))).mean((2, 3)))


torch.manual_seed(0)
net = Classifier().eval()  # <- here
opt = torch.optim.SGD(net.parameters(), lr=0.05)
images, labels = torch.randn(20, 1, 6, 6), torch.randint(0, 2, (20,))
for step in range(8):
    loss = nn.functional.cross_entropy(net(images), labels)
    opt.zero_grad()
    loss.backward()
    opt.step()
