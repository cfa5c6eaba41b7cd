"""Distillation: a teacher in eval mode without gradients, soft targets at a temperature, hard labels beside them."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
x = torch.randn(96, 8)
y = (x[:, :4].sum(1) > x[:, 4:].sum(1)).long()

teacher = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 2))
student = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))

optimizer = torch.optim.Adam(teacher.parameters(), lr=1e-2)
for _ in range(30):
    optimizer.zero_grad()
    F.cross_entropy(teacher(x), y).backward()
    optimizer.step()

teacher.eval()
for parameter in teacher.parameters():
    parameter.requires_grad = False

temperature, alpha = 2.0, 0.7
optimizer = torch.optim.Adam(student.parameters(), lr=2e-2)
losses = []
for epoch in range(15):
    for batch in torch.randperm(96).split(32):
        with torch.no_grad():
            soft = F.softmax(teacher(x[batch]) / temperature, dim=1)
        logits = student(x[batch])
        distill = F.kl_div(F.log_softmax(logits / temperature, dim=1), soft, reduction="batchmean")
        loss = alpha * temperature**2 * distill + (1 - alpha) * F.cross_entropy(logits, y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
print(losses[0], losses[-1])
assert losses[-1] < 0.5 * losses[0]
