"""A denoising autoencoder: noise on the input, the clean input as the target, sigmoid and BCE on values in [0, 1]."""
import torch
from torch import nn

torch.manual_seed(0)
patterns = (torch.rand(6, 20) > 0.5).float()
data = patterns.repeat(8, 1)

autoencoder = nn.Sequential(
    nn.Linear(20, 12), nn.ReLU(), nn.Linear(12, 4), nn.ReLU(), nn.Linear(4, 12), nn.ReLU(), nn.Linear(12, 20), nn.Sigmoid()
)
optimizer = torch.optim.Adam(autoencoder.parameters(), lr=1e-2)
criterion = nn.BCELoss()
losses = []
for epoch in range(15):
    for clean in data[torch.randperm(48)].split(16):
        noisy = (clean + 0.2 * torch.randn_like(clean)).clamp(0, 1)
        reconstruction = autoencoder(noisy)
        loss = criterion(reconstruction, clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
print(losses[0], losses[-1])
assert losses[-1] < 0.9 * losses[0]
