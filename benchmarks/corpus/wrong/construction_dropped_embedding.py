# rule: construction-dropped
import torch
from torch import nn


class Text(nn.Module):
    def __init__(self, vectors):
        super().__init__()
        self.words = nn.Embedding(6, 3)
        self.words.from_pretrained(vectors)  # <- here
        self.out = nn.Linear(3, 2)

    def forward(self, tokens):
        return self.out(self.words(tokens).mean(1))


torch.manual_seed(0)
net = Text(torch.arange(18.0).view(6, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
opt.zero_grad()
nn.functional.cross_entropy(net(torch.randint(0, 6, (8, 4))), torch.randint(0, 2, (8,))).backward()
opt.step()
