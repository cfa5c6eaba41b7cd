# rule: term-without-gradient
import torch
import torch.nn.functional as F

torch.manual_seed(0)
model = torch.nn.Linear(6, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(30, 6), torch.randint(0, 3, (30,))
for step in range(5):
    logits = model(x)
    wrong = (logits.argmax(dim=1) != y).float().mean()  # <- here
    loss = F.cross_entropy(logits, y) + 5.0 * wrong
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
