"""Weight tying: the output layer uses the embedding's own parameter."""
import torch
import torch.nn as nn


class TiedModel(nn.Module):
    def __init__(self, vocabulary=16, width=16):
        super().__init__()
        self.encoder = nn.Embedding(vocabulary, width)
        self.body = nn.Sequential(nn.Linear(width, width), nn.Tanh())
        self.decoder = nn.Linear(width, vocabulary, bias=False)
        self.decoder.weight = self.encoder.weight

    def forward(self, tokens):
        return self.decoder(self.body(self.encoder(tokens)))


torch.manual_seed(0)
model = TiedModel()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
tokens = torch.randint(0, 16, (64,))
targets = (tokens * 3 + 1) % 16
losses = []
for _ in range(40):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(tokens), targets)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses[0], losses[-1])
assert model.decoder.weight is model.encoder.weight
assert losses[-1] < 0.3 * losses[0]
