"""A linear-chain CRF: the partition by logsumexp over time, the gold path's score by gather."""
import torch
import torch.nn as nn


class CRF(nn.Module):
    def __init__(self, tags):
        super().__init__()
        self.transitions = nn.Parameter(torch.zeros(tags, tags))

    def forward(self, emissions, tags):
        time = emissions.size(1)
        alpha = emissions[:, 0]
        for t in range(1, time):
            alpha = torch.logsumexp(alpha.unsqueeze(2) + self.transitions, dim=1) + emissions[:, t]
        partition = torch.logsumexp(alpha, dim=1)
        score = emissions.gather(2, tags.unsqueeze(2)).squeeze(2).sum(1)
        score = score + self.transitions[tags[:, :-1], tags[:, 1:]].sum(1)
        return (partition - score).mean()


torch.manual_seed(0)
emitter, crf = nn.Linear(4, 3), CRF(3)
optimizer = torch.optim.Adam([*emitter.parameters(), *crf.parameters()], lr=5e-2)
tags = torch.arange(6).remainder(3).expand(20, 6).clone()
x = torch.randn(20, 6, 4)
x[..., 0] += tags.float()
losses = []
for _ in range(30):
    optimizer.zero_grad()
    loss = crf(emitter(x), tags)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses[0], losses[-1])
assert losses[-1] < 0.4 * losses[0]
