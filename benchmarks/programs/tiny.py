"""The loop of mlp.py with next to nothing to compute: what is added to a step stands out. tiny.py STEPS FILE [WAY]"""

import sys

import torch
from clock import Clock
from ways import looking

torch.set_num_threads(1)
torch.manual_seed(0)

model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU(), torch.nn.Linear(4, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
images = torch.randn(2, 8)
labels = torch.randint(10, (2,))

clock = Clock(steps=int(sys.argv[1]))
with looking("".join(sys.argv[3:]), model):
    for _ in clock.steps:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
    clock.save(sys.argv[2])
