"""CTC: log-probabilities with time first, as the loss wants them, lengths of inputs and targets."""
import torch
from torch import nn

torch.manual_seed(0)


class Recogniser(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 24, bidirectional=True)
        self.out = nn.Linear(48, 5)

    def forward(self, x):
        return self.out(self.rnn(x)[0]).log_softmax(dim=2)


model = Recogniser()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
ctc = nn.CTCLoss(blank=0, zero_infinity=True)
losses = []
for step in range(40):
    targets = torch.randint(1, 5, (8, 4))
    frames = torch.nn.functional.one_hot(targets - 1, 4).float().repeat_interleave(3, dim=1)
    x = (frames + 0.1 * torch.randn_like(frames)).transpose(0, 1)
    loss = ctc(model(x), targets, torch.full((8,), 12), torch.full((8,), 4))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    losses.append(loss.item())
print(losses[0], losses[-1])
assert losses[-1] < 0.6 * losses[0]
