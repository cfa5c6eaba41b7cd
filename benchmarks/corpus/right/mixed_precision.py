"""Mixed precision on the CPU: forward under autocast in bfloat16, weights and optimizer in float32."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.LayerNorm(32), nn.Linear(32, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss()
x = torch.randn(64, 8)
y = x[:, :4].argmax(dim=1)

losses = []
for epoch in range(12):
    for rows in torch.arange(64).split(16):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
            output = model(x[rows])
            loss = criterion(output, y[rows])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
print(losses[0], losses[-1])
assert losses[-1] < 0.6 * losses[0]
