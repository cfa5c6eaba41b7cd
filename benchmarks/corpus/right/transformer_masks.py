"""A causal transformer with padding: batch first, both masks, loss only on real tokens, warm-up of the rate."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

PAD, VOCABULARY, WIDTH, LENGTH = 0, 12, 32, 10


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Embedding(VOCABULARY, WIDTH, padding_idx=PAD)
        self.position = nn.Parameter(torch.randn(LENGTH, WIDTH) * 0.02)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 64, dropout=0.1, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens):
        length = tokens.size(1)
        x = self.token(tokens) * math.sqrt(WIDTH) + self.position[:length]
        causal = torch.triu(torch.ones(length, length, dtype=torch.bool), diagonal=1)
        x = self.layers(x, mask=causal, src_key_padding_mask=tokens == PAD)
        return self.head(self.norm(x))


def batch(n):
    lengths = torch.randint(5, LENGTH + 1, (n,))
    tokens = torch.zeros(n, LENGTH + 1, dtype=torch.long)
    for row, length in enumerate(lengths):
        start = torch.randint(1, VOCABULARY, ())
        tokens[row, : length + 1] = (start - 1 + torch.arange(length + 1)) % (VOCABULARY - 1) + 1
    return tokens[:, :-1], tokens[:, 1:]


torch.manual_seed(0)
model = Decoder()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 10))
model.train()
losses = []
for step in range(40):
    inputs, targets = batch(16)
    logits = model(inputs)
    loss = F.cross_entropy(logits.reshape(-1, VOCABULARY), targets.reshape(-1), ignore_index=PAD)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    losses.append(loss.item())
print(losses[0], losses[-1])
assert losses[-1] < 0.6 * losses[0]
