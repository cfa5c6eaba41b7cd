"""A variational autoencoder: reparametrised sample, reconstruction and KL summed a sample, averaged over the batch."""
import torch
from torch import nn
from torch.nn import functional as F


class VAE(nn.Module):
    def __init__(self, features, latent):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(features, 24), nn.ReLU())
        self.mu = nn.Linear(24, latent)
        self.log_variance = nn.Linear(24, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, 24), nn.ReLU(), nn.Linear(24, features))

    def reparameterize(self, mu, log_variance):
        std = torch.exp(0.5 * log_variance)
        eps = torch.randn_like(std)
        return mu + eps * std

    def forward(self, x):
        hidden = self.encoder(x)
        mu, log_variance = self.mu(hidden), self.log_variance(hidden)
        z = self.reparameterize(mu, log_variance)
        return self.decoder(z), mu, log_variance


def loss_function(logits, x, mu, log_variance):
    reconstruction = F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    kl = -0.5 * torch.sum(1 + log_variance - mu.pow(2) - log_variance.exp())
    return (reconstruction + kl) / x.size(0)


torch.manual_seed(0)
prototypes = (torch.rand(4, 12) > 0.5).float()
data = prototypes[torch.randint(0, 4, (64,))]
model = VAE(12, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
model.train()
losses = []
for epoch in range(10):
    for batch in data.split(16):
        optimizer.zero_grad()
        logits, mu, log_variance = model(batch)
        loss = loss_function(logits, batch, mu, log_variance)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
print(losses[0], losses[-1])
assert losses[-1] < 0.9 * losses[0]
