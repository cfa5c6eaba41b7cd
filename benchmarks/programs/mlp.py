"""A 784-256-10 perceptron, batches of 64, SGD: about 1 ms a step on one thread. mlp.py STEPS FILE [WAY]"""

import sys

import torch
from clock import Clock
from ways import looking

torch.set_num_threads(1)
torch.manual_seed(0)

model = torch.nn.Sequential(torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
images = torch.randn(64, 784)
labels = torch.randint(10, (64,))

clock = Clock(steps=int(sys.argv[1]))
with looking("".join(sys.argv[3:]), model):
    for _ in clock.steps:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
    clock.save(sys.argv[2])
