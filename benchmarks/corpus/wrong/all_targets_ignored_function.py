# rule: all-targets-ignored
import torch
import torch.nn.functional as F
from torch import nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 6)
        self.out = nn.Linear(6, 3)

    def loss(self, tokens, tags):
        logits = self.out(self.embed(tokens))
        return F.cross_entropy(logits.transpose(1, 2), tags)  # <- here


torch.manual_seed(0)
net = Tagger()
opt = torch.optim.Adam(net.parameters())
for step in range(4):
    tokens = torch.randint(0, 9, (2, 5))
    tags = torch.randint(0, 3, (2, 5)) if step != 1 else torch.full((2, 5), -100)
    opt.zero_grad()
    loss = net.loss(tokens, tags)
    loss.backward()
    opt.step()
    print(loss.item())
