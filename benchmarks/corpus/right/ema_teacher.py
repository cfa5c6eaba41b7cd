"""Self-supervision with an EMA teacher (BYOL): predictor on the student, stop-gradient and moving average."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class Byol(nn.Module):
    def __init__(self, encoder, width, momentum=0.95):
        super().__init__()
        self.student = encoder
        self.predictor = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
        self.teacher = copy.deepcopy(encoder)
        for p in self.teacher.parameters():
            p.requires_grad = False
        self.momentum = momentum

    def forward(self, view1, view2):
        p1, p2 = self.predictor(self.student(view1)), self.predictor(self.student(view2))
        with torch.no_grad():
            z1, z2 = self.teacher(view1), self.teacher(view2)
        return 2 - F.cosine_similarity(p1, z2, dim=-1).mean() - F.cosine_similarity(p2, z1, dim=-1).mean()

    @torch.no_grad()
    def update_teacher(self):
        for student, teacher in zip(self.student.parameters(), self.teacher.parameters()):
            teacher.mul_(self.momentum).add_(student, alpha=1 - self.momentum)


torch.manual_seed(0)
data = torch.randn(64, 10)
model = Byol(nn.Sequential(nn.Linear(10, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 8)), 8)
optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=3e-3)
losses = []
for step in range(40):
    batch = data[torch.randint(0, 64, (32,))]
    loss = model(batch + 0.1 * torch.randn_like(batch), batch + 0.1 * torch.randn_like(batch))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    model.update_teacher()
    losses.append(loss.item())
print(losses[0], losses[-1])
assert losses[-1] < 0.6 * losses[0]
