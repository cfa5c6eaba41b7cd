# rule: mean-of-means
import torch
from torch import nn


def masked_loss(prediction, target, mask):
    return ((prediction - target) ** 2 * mask).sum() / mask.sum()  # <- here


torch.manual_seed(0)
rnn, out = nn.GRU(2, 8, batch_first=True), nn.Linear(8, 1)
optimizer = torch.optim.Adam([*rnn.parameters(), *out.parameters()], lr=1e-3)
micro = 4
for update in range(3):
    optimizer.zero_grad()
    for k in range(micro):
        x = torch.randn(3, 12, 2)
        mask = (torch.arange(12) < 2 + 3 * k).float().expand(3, 12)
        y = out(rnn(x)[0]).squeeze(-1)
        loss = masked_loss(y, x[..., 0], mask)
        (loss / micro).backward()
    optimizer.step()
