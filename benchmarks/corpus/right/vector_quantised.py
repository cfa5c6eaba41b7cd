"""VQ-VAE: nearest code, straight-through gradient to the encoder, codebook and commitment terms."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class VQVAE(nn.Module):
    def __init__(self, features=8, width=4, codes=16):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(features, 24), nn.ReLU(), nn.Linear(24, width))
        self.codebook = nn.Embedding(codes, width)
        self.decoder = nn.Sequential(nn.Linear(width, 24), nn.ReLU(), nn.Linear(24, features))

    def forward(self, x):
        z = self.encoder(x)
        distances = torch.cdist(z.detach(), self.codebook.weight.detach())
        quantised = self.codebook(distances.argmin(dim=1))
        codebook_loss = F.mse_loss(quantised, z.detach())
        commitment = F.mse_loss(z, quantised.detach())
        straight = z + (quantised - z).detach()
        return self.decoder(straight), codebook_loss + 0.25 * commitment


torch.manual_seed(0)
data = torch.randn(6, 8).repeat(16, 1) + 0.05 * torch.randn(96, 8)
model = VQVAE()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
losses = []
for step in range(60):
    batch = data[torch.randint(0, 96, (32,))]
    reconstruction, extra = model(batch)
    loss = F.mse_loss(reconstruction, batch) + extra
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses[0], losses[-1])
assert sum(losses[-5:]) < 0.7 * sum(losses[:5])
