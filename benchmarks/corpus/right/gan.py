"""A GAN: two optimizers, the fake batch detached in the discriminator's step, only the generator stepped in its own."""
import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
discriminator = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
opt_g = torch.optim.Adam(generator.parameters(), lr=5e-3, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(discriminator.parameters(), lr=5e-3, betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()


def real_batch(n):
    return torch.randn(n, 2) * 0.3 + torch.tensor([2.0, -1.0])


before = (generator(torch.randn(256, 4)).mean(0) - torch.tensor([2.0, -1.0])).norm().item()
for step in range(120):
    real = real_batch(32)
    noise = torch.randn(32, 4)

    # discriminator
    opt_d.zero_grad()
    fake = generator(noise)
    loss_real = criterion(discriminator(real), torch.ones(32, 1))
    loss_fake = criterion(discriminator(fake.detach()), torch.zeros(32, 1))
    loss_d = loss_real + loss_fake
    loss_d.backward()
    opt_d.step()

    # generator
    opt_g.zero_grad()
    loss_g = criterion(discriminator(fake), torch.ones(32, 1))
    loss_g.backward()
    opt_g.step()
    if step % 40 == 0:
        print(f"{step} D {loss_d.item():.3f} G {loss_g.item():.3f}")

with torch.no_grad():
    after = (generator(torch.randn(256, 4)).mean(0) - torch.tensor([2.0, -1.0])).norm().item()
print(before, after)
assert after < 0.7 * before
