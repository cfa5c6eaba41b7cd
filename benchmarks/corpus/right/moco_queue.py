"""MoCo: a momentum encoder for the keys, a queue of negatives in a buffer, InfoNCE at a temperature."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class MoCo(nn.Module):
    def __init__(self, features=8, width=16, size=64, momentum=0.9, temperature=0.2):
        super().__init__()
        self.momentum, self.temperature = momentum, temperature
        self.encoder_q = nn.Sequential(nn.Linear(features, 32), nn.ReLU(), nn.Linear(32, width))
        self.encoder_k = nn.Sequential(nn.Linear(features, 32), nn.ReLU(), nn.Linear(32, width))
        self.encoder_k.load_state_dict(self.encoder_q.state_dict())
        self.encoder_k.requires_grad_(False)
        self.register_buffer("queue", F.normalize(torch.randn(width, size), dim=0))
        self.pointer = 0

    @torch.no_grad()
    def momentum_update(self):
        for q, k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            k.data = k.data * self.momentum + q.data * (1 - self.momentum)

    @torch.no_grad()
    def enqueue(self, keys):
        end = self.pointer + keys.size(0)
        self.queue[:, self.pointer : end] = keys.t()
        self.pointer = end % self.queue.size(1)

    def forward(self, query, key):
        q = F.normalize(self.encoder_q(query), dim=1)
        with torch.no_grad():
            self.momentum_update()
            k = F.normalize(self.encoder_k(key), dim=1)
        positive = torch.einsum("nc,nc->n", q, k).unsqueeze(-1)
        negative = torch.einsum("nc,ck->nk", q, self.queue.clone().detach())
        logits = torch.cat([positive, negative], dim=1) / self.temperature
        labels = torch.zeros(logits.size(0), dtype=torch.long)
        self.enqueue(k)
        return F.cross_entropy(logits, labels)


torch.manual_seed(0)
data = torch.randn(64, 8)
model = MoCo()
optimizer = torch.optim.SGD(model.encoder_q.parameters(), lr=0.3)
losses = []
for step in range(50):
    batch = data[torch.randperm(64)[:16]]
    loss = model(batch + 0.1 * torch.randn_like(batch), batch + 0.1 * torch.randn_like(batch))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses[0], losses[-1])
assert sum(losses[-5:]) < 0.9 * sum(losses[2:7])
