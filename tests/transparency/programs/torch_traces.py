# What shows in torch that a recorder is at work.
# transparency: differs="nodes carry a label of ours, and two hooks on optimizer steps are ours"
import sys

import torch

w = torch.ones(1, requires_grad=True)
print("a node's metadata:", (w * 2).grad_fn.metadata)
steps = sys.modules["torch.optim.optimizer"]
print("hooks on steps:", len(steps._global_optimizer_pre_hooks), len(steps._global_optimizer_post_hooks))
print("next hook's number:", w.register_hook(print).id)
