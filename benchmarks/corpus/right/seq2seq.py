"""Sequence to sequence with teacher forcing: an encoder's state starts the decoder, which sees the right last token."""
import random

import torch
import torch.nn as nn

BOS, VOCABULARY, LENGTH = 0, 8, 4


class Encoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width)
        self.rnn = nn.GRU(width, width, batch_first=True)

    def forward(self, tokens):
        return self.rnn(self.embed(tokens))[1]


class Decoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width)
        self.cell = nn.GRUCell(width, width)
        self.out = nn.Linear(width, VOCABULARY)

    def forward(self, hidden, targets, teacher_forcing):
        hidden = hidden[0]
        token = torch.full((targets.size(0),), BOS)
        logits = []
        for t in range(targets.size(1)):
            hidden = self.cell(self.embed(token), hidden)
            step = self.out(hidden)
            logits.append(step)
            token = targets[:, t] if random.random() < teacher_forcing else step.argmax(dim=1)
        return torch.stack(logits, dim=1)


torch.manual_seed(0)
random.seed(0)
encoder, decoder = Encoder(32), Decoder(32)
parameters = [*encoder.parameters(), *decoder.parameters()]
optimizer = torch.optim.Adam(parameters, lr=1e-2)
criterion = nn.CrossEntropyLoss()
losses = []
for step in range(60):
    source = torch.randint(1, VOCABULARY, (24, LENGTH))
    target = source.flip(1)
    logits = decoder(encoder(source), target, teacher_forcing=0.8)
    loss = criterion(logits.transpose(1, 2), target)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(parameters, 1.0)
    optimizer.step()
    losses.append(loss.item())
print(losses[0], losses[-1])
assert losses[-1] < 0.7 * losses[0]
