# rule: bidirectional-last-step
import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(3, 8, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(16, 2)

    def forward(self, x):
        out, _ = self.gru(x)
        return self.fc(out[:, -1])  # <- here


torch.manual_seed(0)
model = Tagger()
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
x, y = torch.randn(16, 9, 3), torch.randint(0, 2, (16,))
for _ in range(4):
    opt.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    opt.step()
