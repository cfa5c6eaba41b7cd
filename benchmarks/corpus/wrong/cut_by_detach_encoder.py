# rule: cut-by-detach
import torch
import torch.nn as nn

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(6, 12), nn.ReLU())
classifier = nn.Linear(12, 2)
optimizer = torch.optim.Adam([*encoder.parameters(), *classifier.parameters()], lr=1e-3)
x, y = torch.randn(24, 6), torch.randint(0, 2, (24,))
for epoch in range(5):
    features = encoder(x).detach()  # <- here
    loss = nn.functional.cross_entropy(classifier(features), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
