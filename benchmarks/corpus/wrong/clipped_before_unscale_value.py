# rule: clipped-before-unscale
import torch
import torch.nn as nn
from torch.nn.utils import clip_grad_value_


class Loop:
    def __init__(self, net):
        self.net = net
        self.opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=4096.0)

    def __call__(self, x, y):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = self.net(x)
        loss = nn.functional.cross_entropy(out.float(), y)
        self.opt.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        clip_grad_value_(self.net.parameters(), 0.5)  # <- here
        self.scaler.unscale_(self.opt)
        self.scaler.step(self.opt)
        self.scaler.update()
        return loss.item()


torch.manual_seed(0)
loop = Loop(nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3)))
for _ in range(6):
    loop(torch.randn(16, 4), torch.randint(0, 3, (16,)))
