"""Truncated backpropagation through time: the hidden state is carried over, detached at each chunk's start."""
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTM(1, 16, batch_first=True)
        self.out = nn.Linear(16, 1)

    def forward(self, x, state=None):
        hidden, state = self.cell(x, state)
        return self.out(hidden), state


torch.manual_seed(0)
time = torch.arange(0, 81) * 0.3
wave = torch.stack([torch.sin(time + phase) for phase in (0.0, 1.0, 2.0)]).unsqueeze(-1)

net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-2)
epoch_losses = []
for epoch in range(8):
    state = None
    total = 0.0
    for start in range(0, 80, 10):
        chunk, target = wave[:, start : start + 10], wave[:, start + 1 : start + 11]
        if state is not None:
            state = tuple(s.detach() for s in state)
        prediction, state = net(chunk, state)
        loss = nn.functional.mse_loss(prediction, target)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
    epoch_losses.append(total / 8)
print(epoch_losses)
assert epoch_losses[-1] < 0.5 * epoch_losses[0]
