# rule: flat-function
import torch
import torch.nn as nn


class Hash(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(6, 8)
        self.out = nn.Linear(8, 2)

    def forward(self, x):
        codes = self.project(x).sign()  # <- here
        return self.out(codes)


torch.manual_seed(0)
model = Hash()
opt = torch.optim.Adam(model.parameters())
for _ in range(4):
    x, y = torch.randn(16, 6), torch.randint(0, 2, (16,))
    opt.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    opt.step()
