"""A bidirectional LSTM on packed sequences: the final states of both directions are joined."""
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence


class Classifier(nn.Module):
    def __init__(self, vocabulary, width):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width, padding_idx=0)
        self.lstm = nn.LSTM(width, width, batch_first=True, bidirectional=True)
        self.linear = nn.Linear(2 * width, 1)

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(self.embedding(tokens), lengths, batch_first=True, enforce_sorted=False)
        _, (hidden, _) = self.lstm(packed)
        both = torch.cat([hidden[-2], hidden[-1]], dim=1)
        return self.linear(both).squeeze(1)


torch.manual_seed(0)
sequences = [torch.randint(1, 8, (int(length),)) for length in torch.randint(3, 10, (48,))]
labels = torch.tensor([float(sequence[0] > 4) for sequence in sequences])
lengths = torch.tensor([len(sequence) for sequence in sequences])
tokens = pad_sequence(sequences, batch_first=True)

model = Classifier(8, 12)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
criterion = nn.BCEWithLogitsLoss()
losses = []
for epoch in range(10):
    for index in torch.randperm(48).split(16):
        model.zero_grad()
        loss = criterion(model(tokens[index], lengths[index]), labels[index])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
print(losses[0], losses[-1])
assert losses[-1] < 0.5 * losses[0]
