# rule: gradcheck-in-single-precision
import torch
from torch import nn

torch.manual_seed(0)
layer = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
x = torch.randn(2, 3, requires_grad=True)  # <- here
try:
    print(torch.autograd.gradcheck(layer, (x,)))
except RuntimeError as error:
    print(str(error)[:60])
