"""L-BFGS: the closure resets, computes and backpropagates; the optimizer calls it as often as it needs."""
import torch

torch.manual_seed(0)
x = torch.linspace(-1, 1, 40).unsqueeze(1)
y = 0.5 * x**3 - x + 0.2

model = torch.nn.Sequential(torch.nn.Linear(1, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
optimizer = torch.optim.LBFGS(model.parameters(), lr=1.0, max_iter=10, line_search_fn="strong_wolfe")


def closure():
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    return loss


losses = []
for epoch in range(5):
    loss = optimizer.step(closure)
    losses.append(loss.item())
    print(epoch, loss.item())
assert losses[-1] < 0.01 * losses[0]
