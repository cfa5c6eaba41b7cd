"""Objectives that are maximised: once by a minus, once by `maximize=True`, a log-likelihood and an entropy."""
import torch
from torch.distributions import Categorical, Normal

torch.manual_seed(0)
data = torch.randn(100) * 2 + 3
mean, log_std = torch.zeros(1, requires_grad=True), torch.zeros(1, requires_grad=True)
optimizer = torch.optim.Adam([mean, log_std], lr=0.1)
likelihoods = []
for step in range(40):
    log_likelihood = Normal(mean, log_std.exp()).log_prob(data).mean()
    optimizer.zero_grad()
    (-log_likelihood).backward()
    optimizer.step()
    likelihoods.append(log_likelihood.item())

logits = torch.randn(6, requires_grad=True)
ascent = torch.optim.SGD([logits], lr=1.0, maximize=True)
entropies = []
for step in range(30):
    entropy = Categorical(logits=logits).entropy()
    ascent.zero_grad()
    entropy.backward()
    ascent.step()
    entropies.append(entropy.item())
print(likelihoods[-1], entropies[-1])
assert likelihoods[-1] > likelihoods[0]
assert entropies[-1] > entropies[0]
