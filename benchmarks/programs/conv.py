"""A small convolutional net, batches of 32 images of 32 x 32, SGD: about 30 ms a step. conv.py STEPS FILE [WAY]"""

import sys

import torch
from clock import Clock
from ways import looking

torch.set_num_threads(1)
torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(3, 24, 3, padding=1)
        self.second = torch.nn.Conv2d(24, 48, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(48)
        self.pool = torch.nn.MaxPool2d(2)
        self.head = torch.nn.Linear(48 * 8 * 8, 10)

    def forward(self, x):
        x = self.pool(torch.relu(self.first(x)))
        x = self.pool(torch.relu(self.norm(self.second(x))))
        return self.head(x.flatten(1))


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
images = torch.randn(32, 3, 32, 32)
labels = torch.randint(10, (32,))

clock = Clock(steps=int(sys.argv[1]))
with looking("".join(sys.argv[3:]), model):
    for _ in clock.steps:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
    clock.save(sys.argv[2])
