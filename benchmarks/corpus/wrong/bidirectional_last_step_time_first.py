# rule: bidirectional-last-step
import torch
import torch.nn as nn

torch.manual_seed(0)
lstm = nn.LSTM(input_size=4, hidden_size=6, bidirectional=True)
score = nn.Linear(12, 1)
optimizer = torch.optim.SGD(list(lstm.parameters()) + list(score.parameters()), lr=0.1)
for step in range(4):
    sequence = torch.randn(11, 10, 4)
    output, (hidden, cell) = lstm(sequence)
    last = output[-1]  # <- here
    loss = (score(last) - sequence.sum((0, 2)).unsqueeze(1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
