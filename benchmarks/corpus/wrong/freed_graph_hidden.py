# rule: freed-graph
import torch
from torch import nn

torch.manual_seed(0)
rnn, head = nn.GRU(2, 6, batch_first=True), nn.Linear(6, 1)
optimizer = torch.optim.Adam([*rnn.parameters(), *head.parameters()])
hidden = torch.zeros(1, 4, 6)
for step in range(4):
    x = torch.randn(4, 5, 2)
    out, hidden = rnn(x, hidden)  # <- here
    loss = head(out).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
