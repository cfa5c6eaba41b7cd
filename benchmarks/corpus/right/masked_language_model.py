"""Masked language modelling: random positions replaced by a mask token, the loss on them alone."""
import torch
from torch import nn

MASK, VOCABULARY = 10, 11


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, 16)
        self.position = nn.Embedding(12, 16)
        self.mix = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.out = nn.Linear(16, VOCABULARY)

    def forward(self, tokens):
        positions = torch.arange(tokens.size(1))
        return self.out(self.mix(self.embed(tokens) + self.position(positions)))


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss()
losses = []
for step in range(70):
    start = torch.randint(0, 10, (16, 1))
    tokens = (start + torch.arange(12)) % 10
    chosen = torch.rand(tokens.shape) < 0.2
    chosen[:, 3] = True
    labels = tokens.masked_fill(~chosen, -100)
    logits = model(tokens.masked_fill(chosen, MASK))
    loss = criterion(logits.flatten(0, 1), labels.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses[0], losses[-1])
assert losses[-1] < 0.6 * losses[0]
