"""Contrastive learning of two towers (CLIP): symmetric cross-entropy, a learned temperature clamped after the step."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class TwoTowers(nn.Module):
    def __init__(self):
        super().__init__()
        self.image, self.text = nn.Linear(8, 6), nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 6))
        self.logit_scale = nn.Parameter(torch.tensor(math.log(1 / 0.2)))

    def forward(self, image, text):
        image, text = F.normalize(self.image(image), dim=-1), F.normalize(self.text(text), dim=-1)
        return self.logit_scale.exp() * image @ text.t()


torch.manual_seed(0)
meaning = torch.randn(64, 3)
images = meaning @ torch.randn(3, 8) + 0.1 * torch.randn(64, 8)
texts = meaning @ torch.randn(3, 5) + 0.1 * torch.randn(64, 5)
model = TwoTowers()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
losses = []
for epoch in range(15):
    for rows in torch.randperm(64).split(16):
        logits = model(images[rows], texts[rows])
        labels = torch.arange(len(rows))
        loss = (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            model.logit_scale.clamp_(0, math.log(100))
        losses.append(loss.item())
print(losses[0], losses[-1], model.logit_scale.item())
assert sum(losses[-4:]) < 0.7 * sum(losses[:4])
