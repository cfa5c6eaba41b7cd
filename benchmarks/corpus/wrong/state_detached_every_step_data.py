# rule: state-detached-every-step
import torch
import torch.nn as nn

torch.manual_seed(0)
rnn = nn.RNNCell(1, 8)
head = nn.Linear(8, 1)
optimizer = torch.optim.SGD(list(rnn.parameters()) + list(head.parameters()), lr=0.05)
for update in range(6):
    x = torch.randn(10, 20, 1)
    state = torch.zeros(10, 8)
    for t in range(20):
        state = rnn(x[:, t], state.data)  # <- here
    loss = (head(state) - x.sum(1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
