"""Style transfer in small: the network is frozen, the image is what is optimised."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1)).eval()
for p in features.parameters():
    torch.nn.init.normal_(p, std=0.3)
    p.requires_grad_(False)


def gram(activations):
    flat = activations.flatten(2)
    return flat @ flat.transpose(1, 2) / flat.size(-1)


content = torch.rand(1, 3, 12, 12)
style = (torch.arange(12) % 2).float().expand(1, 3, 12, 12)
with torch.no_grad():
    content_target, style_target = features(content), gram(features(style))

image = content.clone().requires_grad_(True)
optimizer = torch.optim.Adam([image], lr=2e-2)
losses = []
for step in range(40):
    optimizer.zero_grad()
    activations = features(image)
    loss = F.mse_loss(activations, content_target) + 50 * F.mse_loss(gram(activations), style_target)
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        image.clamp_(0, 1)
    losses.append(loss.item())
print(losses[0], losses[-1])
assert losses[-1] < 0.7 * losses[0]
