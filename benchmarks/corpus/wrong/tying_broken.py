# rule: tying-broken
import copy

import torch
from torch import nn


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Embedding(10, 8)
        self.decoder = nn.Linear(8, 10, bias=False)
        self.decoder.weight = copy.deepcopy(self.encoder.weight)  # <- here

    def forward(self, tokens):
        return self.decoder(self.encoder(tokens))


torch.manual_seed(0)
net = Tied()
opt = torch.optim.Adam(net.parameters())
tokens = torch.randint(0, 10, (20,))
for _ in range(4):
    opt.zero_grad()
    nn.functional.cross_entropy(net(tokens), tokens).backward()
    opt.step()
