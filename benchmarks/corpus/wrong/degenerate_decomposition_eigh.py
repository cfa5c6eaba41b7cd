# rule: degenerate-decomposition
import torch

torch.manual_seed(0)
scale = torch.nn.Parameter(torch.tensor(2.0))
matrix = scale * torch.eye(3)
values, vectors = torch.linalg.eigh(matrix)  # <- here
loss = (vectors[:, 0] - torch.ones(3)).pow(2).sum() + values.sum()
loss.backward()
print(loss.item(), scale.grad)
