"""A small language model: accumulation over micro-batches of equal size, clipping, and the last window flushed."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class CharModel(nn.Module):
    def __init__(self, vocabulary, width=24):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        hidden, _ = self.rnn(self.embed(tokens))
        return self.head(hidden)


torch.manual_seed(0)
text = "the quick brown fox jumps over the lazy dog " * 12
letters = sorted(set(text))
data = torch.tensor([letters.index(letter) for letter in text])

model = CharModel(len(letters))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
accumulation_steps, length, batch_size = 4, 16, 4

first = last = None
optimizer.zero_grad(set_to_none=True)
for micro_step in range(120):
    starts = torch.randint(0, len(data) - length - 1, (batch_size,))
    inputs = torch.stack([data[s : s + length] for s in starts])
    targets = torch.stack([data[s + 1 : s + length + 1] for s in starts])
    logits = model(inputs)
    loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))
    (loss / accumulation_steps).backward()
    if (micro_step + 1) % accumulation_steps == 0:
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    last = loss.item()
    first = last if first is None else first
    if micro_step % 40 == 0:
        print(micro_step, round(last, 3))

assert last < 0.6 * first
