# rule: duplicate-index-write
import torch


def soft_histogram(values, weights, bins):
    counts = torch.zeros(bins)
    index = (values * bins).long().clamp(0, bins - 1)
    counts[index] = counts[index] + weights  # <- here
    return counts


torch.manual_seed(0)
values = torch.rand(40)
weights = torch.ones(40, requires_grad=True)
target = torch.full((5,), 8.0)
loss = (soft_histogram(values, weights, 5) - target).abs().sum()
loss.backward()
print(loss.item(), weights.grad)
