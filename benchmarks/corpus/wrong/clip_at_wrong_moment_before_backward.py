# rule: clip-at-wrong-moment
import torch
import torch.nn.functional as F

torch.manual_seed(0)
model = torch.nn.Linear(8, 4)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    x, y = torch.randn(12, 8), torch.randint(0, 4, (12,))
    loss = F.cross_entropy(model(x) * 10, y)
    opt.zero_grad()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)  # <- here
    loss.backward()
    opt.step()
