# rule: reset-before-step
import torch
import torch.nn.functional as F

torch.manual_seed(0)
model = torch.nn.Linear(5, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
x, y = torch.randn(16, 5), torch.randint(0, 2, (16,))
for step in range(8):
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.zero_grad()  # <- here
    optimizer.step()
    print(loss.item())
