# rule: inference-tensor-in-training
import torch
from torch import nn

torch.manual_seed(0)
teacher, student = nn.Linear(4, 8), nn.Linear(8, 2)


@torch.inference_mode()  # <- here
def embed(x):
    return torch.relu(teacher(x))


features = embed(torch.randn(20, 4))
opt = torch.optim.SGD(student.parameters(), lr=0.1)
loss = nn.functional.cross_entropy(student(features), torch.randint(0, 2, (20,)))
opt.zero_grad()
loss.backward()
opt.step()
