# rule: mean-of-means
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(12, 8), nn.Linear(8, 12))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
steps = 2
for update in range(4):
    for length in (2, 9):
        tokens = torch.randint(0, 12, (2, 10))
        labels = tokens.roll(-1, 1).clone()
        labels[:, length:] = -100
        logits = model(tokens)
        loss = F.cross_entropy(logits.reshape(-1, 12), labels.reshape(-1), ignore_index=-100)  # <- here
        (loss / steps).backward()
    opt.step()
    opt.zero_grad()
