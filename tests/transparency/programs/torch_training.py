# Loops of the kinds that people write, with everything around them.
import copy
import io
import json
import logging
import math
import pickle
import pickletools
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils import parametrizations, parametrize
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, ReduceLROnPlateau, SequentialLR, StepLR
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn, update_bn

from helpers import torching

logging.basicConfig(level=logging.INFO, format="%(levelname)s:%(lineno)d:%(message)s")


def title(text):
    print("==", text)
    torch.manual_seed(len(text))


def bits(value):
    if isinstance(value, (list, tuple)):
        return [bits(v) for v in value]
    return [float(v).hex() for v in value.detach().flatten().tolist()[:4]]


title("LBFGS")
w = nn.Parameter(torch.tensor([1.5, -1.0]))
optimizer = torch.optim.LBFGS([w], lr=0.5, max_iter=4, line_search_fn="strong_wolfe")
calls = []


def closure():
    optimizer.zero_grad()
    loss = (1 - w[0]) ** 2 + 10 * (w[1] - w[0] ** 2) ** 2
    loss.backward()
    calls.append((torch.is_grad_enabled(), loss.item()))
    return loss


for _ in range(3):
    returned = optimizer.step(closure)
print(len(calls), calls[-1], bits(w), returned.requires_grad, bits(w.grad))
for kind in (torch.optim.SGD, torch.optim.Adam):
    optimizer = kind([w], lr=0.1)
    print(optimizer.step(closure).item().hex(), bits(w), w.grad_fn, optimizer.step.__name__)

title("GradScaler and autocast")
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16, growth_interval=2)
for step in range(6):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(torch.randn(3, 4))
        loss = out.float().square().mean() * (float("inf") if step == 2 else 1)
    scaler.scale(loss).backward()
    if step % 2:
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        print(step, float(norm).hex())
    scaler.step(optimizer)
    scaler.update()
    print(step, out.dtype, scaler.get_scale(), bits(model.weight))
half = nn.Linear(4, 2).to(torch.bfloat16)
half(torch.ones(1, 4, dtype=torch.bfloat16)).sum().backward()
print(half.weight.grad.dtype, bits(half.weight.grad.float()))

title("accumulation, clipping, schedulers")
model = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 1))
optimizer = torch.optim.AdamW([{"params": model[0].parameters(), "lr": 1e-2, "name": "first"}, {"params": model[2].parameters()}], lr=1e-3)
scheduler = SequentialLR(optimizer, [LambdaLR(optimizer, lambda e: (e + 1) / 3), CosineAnnealingLR(optimizer, 4)], milestones=[3])
history = defaultdict(list)
for step in range(8):
    for micro in range(2):
        loss = model(torch.randn(4, 3)).pow(2).mean() / 2
        loss.backward()
        history["loss"].append(loss.item())
    history["norm"].append(nn.utils.clip_grad_norm_(model.parameters(), 0.1, norm_type=2.0).item())
    nn.utils.clip_grad_value_(model.parameters(), 0.05)
    for p in model.parameters():
        p.grad.mul_(0.5)
        p.grad = p.grad + 0.001 * p.detach()
        p.grad.data.add_(1e-4)
    optimizer.step()
    optimizer.zero_grad()
    scheduler.step()
    history["lr"].append([g["lr"] for g in optimizer.param_groups])
print({k: v[-1] for k, v in history.items()}, json.dumps(history["lr"][:2]), [bits(p) for p in model.parameters()])
plateau = ReduceLROnPlateau(optimizer, patience=0, factor=0.5)
for value in (1.0, 1.0, torch.tensor(1.0)):
    plateau.step(value)
print(plateau.get_last_lr(), StepLR(optimizer, 1).get_last_lr(), optimizer.param_groups[0]["name"])
optimizer.add_param_group({"params": [nn.Parameter(torch.ones(1))], "lr": 1})
print(len(optimizer.param_groups), optimizer)

title("averages and copies")
ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
swa = AveragedModel(model)
best = copy.deepcopy(model.state_dict())
kept = model.state_dict()
for _ in range(2):
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    ema.update_parameters(model)
    swa.update_parameters(model)
update_bn([torch.ones(2, 3)], swa)
print(bits(ema.module[0].weight), bits(swa.module[0].weight), ema.n_averaged, torch.equal(best["0.weight"], model[0].weight), torch.equal(kept["0.weight"], model[0].weight))
model.load_state_dict(best)
print(bits(model[0].weight), model[0].weight._version)
with torch.no_grad():
    for target, source in zip(ema.parameters(), model.parameters()):
        target.lerp_(source, 0.5)
print(bits(ema.module[0].weight))

title("parametrizations")
layer = parametrizations.weight_norm(nn.Linear(3, 2))
spectral = parametrizations.spectral_norm(nn.Linear(3, 3))
orthogonal = parametrizations.orthogonal(nn.Linear(2, 2))


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).transpose(-1, -2)


custom = nn.Linear(2, 2)
parametrize.register_parametrization(custom, "weight", Symmetric())
for m in (layer, spectral, orthogonal, custom):
    x = torch.ones(1, m.in_features)
    m(x).square().sum().backward()
    print(type(m).__name__, [(n, p.grad is not None, bits(p.grad) if p.grad is not None else None) for n, p in m.named_parameters()], bits(m.weight), m.weight is m.weight)
with parametrize.cached():
    print(custom.weight is custom.weight)

title("shapes of programs")


@dataclass
class Config:
    sizes: list = field(default_factory=lambda: [3, 4, 1])
    lr: float = 1e-2


class Model(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.layers = nn.ModuleList([nn.Linear(a, b) for a, b in zip(config.sizes, config.sizes[1:])])
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))
        self.scale, self.extra = nn.Parameter(torch.ones(())), nn.ParameterDict({"a": torch.ones(2), "b": torch.zeros(1)})
        self.frozen = nn.Parameter(torch.ones(1), requires_grad=False)

    @property
    def device(self):
        return next(self.parameters()).device

    def forward(self, batch, *, detach=False):
        x = batch["x"]
        self.steps += 1
        self.steps.add_(0)
        for i, layer in enumerate(self.layers):
            x = layer(x) if i == 0 else layer(F.relu(x))
            self.last = x.detach() if detach else x
        return {"logits": x * self.scale, "aux": [self.extra["a"].sum()]}

    def loss(self, out, batch):
        return (out["logits"].squeeze(-1) - batch["y"]).pow(2).mean() + 0.1 * out["aux"][0] ** 2


model = Model(Config())
optimizer = torch.optim.SGD((p for p in model.parameters() if p.requires_grad), lr=model.config.lr)
data = [{"x": torch.randn(2, 3), "y": torch.ones(2)} for _ in range(4)]
total = 0
for epoch in range(2):
    for i, batch in enumerate(data):
        out = model(batch, detach=bool(i % 2))
        loss = model.loss(out, batch)
        loss.backward()
        if (i + 1) % 2 == 0:
            optimizer.step()
            optimizer.zero_grad()
        total += loss.detach()
    logging.info("epoch %d loss %s device %s", epoch, total.item().hex(), model.device)
print(model.steps, {n: bits(p) for n, p in model.named_parameters()}, model.last.requires_grad, f"{total / 8:.6f}", f"{loss.item():>12.5e}", math.isfinite(loss))
print([n for n, p in model.named_parameters() if p.grad is None], sum(p.numel() for p in model.parameters()), sorted(vars(model)))
print(torching.train(nn.Sequential(torching.Scale(3), nn.Linear(3, 1)), data[0]["x"], 5).hex())
a = b = torch.ones(2, requires_grad=True)
(x, y), *rest = [torch.stack([a, b * 2]), 3, 4]
(x * y).sum().backward()
print(a.grad, rest)
results = {name: (lambda v, k=k: (v * k).sum().item())(a) for k, name in enumerate("abc")}
print(results, [t.item() for t in a], max(a.tolist()), sorted([t.item() for t in a * torch.tensor([2, 1])]), any(a > 0), all(a > 5), sum(a), len(a), list(zip(a, b))[0][0].shape)
for i in range(1, 3):
    a.grad = None
    loss = sum((a**k).sum() for k in range(i))
    loss.backward()
    print(a.grad)
if (norm := a.grad.norm()) > 0.5 and not torch.isnan(norm):
    print("norm", norm.item().hex(), 1 if norm else 0, norm if norm > 100 else "small")
while (loss := (a.detach() * 0).sum()) > 0:
    break
else:
    print("else", loss)
a.data, b2 = a.data * 2, 1
a.grad[:] = 5
a.grad[0] += 1
a.grad /= 2
a.data[0] -= 0.5
a.data.clamp_(max=1)
with torch.no_grad():
    a -= 0.1 * a.grad
    a[a > 0.5] = 0.25
    a.sub_(0.1).mul_(2)
print(a, a.grad, a._version, b is a)
del a.grad
print(a.grad)
try:
    del a.grad
except Exception as error:
    print(type(error).__name__, error)
try:
    assert a.sum() > 1e9, f"too small: {a.sum().item():.3f}"
except AssertionError as error:
    print(error)

title("saving")
model.eval()
buffer = io.BytesIO()
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 3}, buffer)
print(len(buffer.getvalue()), hash(buffer.getvalue()))
buffer.seek(0)
loaded = torch.load(buffer, weights_only=True)
print(sorted(loaded), {k: bits(v.float()) for k, v in loaded["model"].items()})
whole = io.BytesIO()
torch.save(model, whole)
print(len(whole.getvalue()), hash(whole.getvalue()))
whole.seek(0)
again = torch.load(whole, weights_only=False)
print(type(again) is Model, sorted(vars(again)), again.training, bits(again(data[0])["logits"]))
for thing in (model, optimizer.state_dict(), Config(), Model, closure.__name__, model.loss(model(data[0]), data[0]).detach(), model.scale, Model.forward, torching.train, nn.Linear(1, 1, bias=False).state_dict()):
    dumped = pickle.dumps(thing)
    words = [argument for _, argument, _ in pickletools.genops(dumped) if isinstance(argument, str) and not argument.isdigit()]
    print(type(thing).__name__, words, type(pickle.loads(dumped)).__name__)
for thing in (optimizer, scheduler, ema):
    copied = copy.deepcopy(thing)
    print(type(copied).__name__, sorted(vars(copied)) == sorted(vars(thing)))
with tempfile.NamedTemporaryFile(suffix=".pt") as file:
    torch.save(model.state_dict(), file.name)
    print(model.load_state_dict(torch.load(file.name), strict=False), model.load_state_dict({}, strict=False).missing_keys[:2])
torch.manual_seed(0)
print(torch.rand(1).item().hex())
