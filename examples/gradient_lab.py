"""Gradients accumulate, modes and grad recording are two controls, and a layer keeps its contract."""

import torch

torch.set_num_threads(1)

w = torch.tensor(3.0, requires_grad=True)
loss = (w * 2.0 - 1.0).square()
loss.backward()
assert w.grad.item() == 20.0

# A fresh graph; the buffer still holds the first gradient.
(w * 2.0 - 1.0).square().backward()
assert w.grad.item() == 40.0
try:
    assert w.grad.item() == 20.0
except AssertionError:
    print("expected failure: accumulated gradient is 40, not 20")
else:
    raise AssertionError("the buffer did not accumulate")

w.grad = None
(w * 2.0 - 1.0).square().backward()
assert w.grad.item() == 20.0

model = torch.nn.Sequential(torch.nn.Linear(2, 1, bias=False), torch.nn.Dropout(p=1.0))
with torch.no_grad():
    model[0].weight.copy_(torch.tensor([[2.0, -1.0]]))
x = torch.tensor([[3.0, 4.0]])

model.train()
assert torch.equal(model(x), torch.zeros(1, 1))

model.eval()
y = model(x)
assert y.requires_grad and y.item() == 2.0
with torch.no_grad():
    y_without_graph = model(x)
assert not y_without_graph.requires_grad
assert y_without_graph.item() == 2.0

model.train()
with torch.no_grad():
    assert model.training and model(x).item() == 0.0

try:
    model(torch.tensor([[3.0, 4.0, 5.0]]))
except RuntimeError:
    print("expected failure: three features cannot feed Linear(2, 1)")
else:
    raise AssertionError("the layer accepted three features")

print("PASS: gradients 20 -> 40 -> 20; eval/no_grad and shape checks")
print("torch", torch.__version__)
