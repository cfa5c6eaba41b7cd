"""OneCycleLR stepped after each batch, parameter groups with and without weight decay."""
import torch
import torch.nn as nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 32), nn.LayerNorm(32), nn.ReLU(), nn.Linear(32, 1))
decay = [p for p in model.parameters() if p.ndim >= 2]
no_decay = [p for p in model.parameters() if p.ndim < 2]
optimizer = torch.optim.AdamW(
    [{"params": decay, "weight_decay": 0.05}, {"params": no_decay, "weight_decay": 0.0}], lr=1e-3
)
x = torch.randn(128, 10)
y = x[:, :3].prod(dim=1, keepdim=True) + x[:, 3:4]
epochs, batches = 10, 8
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=2e-2, total_steps=epochs * batches)
epoch_losses = []
for epoch in range(epochs):
    total = 0.0
    for rows in torch.randperm(128).chunk(batches):
        loss = (model(x[rows]) - y[rows]).pow(2).mean()
        loss.backward()
        optimizer.step()
        scheduler.step()
        for p in model.parameters():
            p.grad = None
        total += loss.item()
    epoch_losses.append(total / batches)
    print(epoch, epoch_losses[-1], scheduler.get_last_lr()[0])
assert epoch_losses[-1] < 0.7 * epoch_losses[0]
