# Warnings that come out of torch: their text, their line, how often.
# transparency:
# transparency: -- always
# transparency: -- error
# transparency: -- record
import sys
import traceback
import warnings

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

action = sys.argv[1] if len(sys.argv) > 1 else None
caught = []
if action == "record":
    recorder = warnings.catch_warnings(record=True)
    caught = recorder.__enter__()
    warnings.simplefilter("always")
elif action:
    warnings.simplefilter(action)


def attempt(function, *args):
    print("==", function.__name__)
    try:
        function(*args)
    except Exception:
        traceback.print_exc(file=sys.stdout)


def leaf(*shape):
    return torch.ones(*shape, requires_grad=True)


def broadcasting():
    F.mse_loss(torch.ones(2, 1), torch.ones(2))
    for n in range(2):
        nn.MSELoss()(torch.ones(2, n + 1), torch.ones(
            1, n + 1) if n else torch.ones(3, 1, 1))
    F.l1_loss(torch.ones(2, 1), torch.ones(2)) + F.smooth_l1_loss(torch.ones(2, 1), torch.ones(2))


def clipping():
    net = nn.Linear(1, 1)
    parameters = (p for p in net.parameters())
    list(parameters)
    print(nn.utils.clip_grad_norm_(parameters, 1.0))
    print(nn.utils.clip_grad_norm_([], 1.0), nn.utils.clip_grad_value_(net.parameters(), 1.0))


def scalar():
    w = leaf(1)
    print(float(w), int(w), [float(w * 2) for _ in range(2)])
    w.sum().item(), f"{float(w.sum()):.1f}"


def non_leaf_grad():
    y = leaf(1) * 2
    print(y.grad)
    print((y * 2).grad, y.grad is None)
    getattr(y, "grad")


def copying():
    t = torch.tensor(torch.ones(1))
    torch.as_tensor(t), torch.tensor(leaf(1)), t.new_tensor(t)


def degrees():
    torch.ones(1).std()
    torch.ones(1).var(), leaf(1).std()


def scheduling():
    w = leaf(1)
    optimizer = torch.optim.SGD([w], lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    scheduler.step()
    optimizer.step()
    scheduler.step()
    scheduler.step(5)


def graph():
    w = leaf(1)
    (w * w).sum().backward(create_graph=True)
    w.grad = None


def transposing():
    torch.ones(2, 2, 2).T
    torch.ones(1).T, torch.range(0, 1)


def complex_cast():
    w = torch.ones(1, dtype=torch.cfloat, requires_grad=True)
    (w * 1j).to(torch.float).sum().backward()


def numpy_array():
    array = np.ones(2)
    array.flags.writeable = False
    torch.from_numpy(array)
    torch.tensor([np.ones(2), np.ones(2)])
    np.array(leaf(1).detach()), np.log(np.zeros(1)), np.float64(1) / np.zeros(1)


def sparse():
    torch.eye(2).to_sparse_csr()
    torch.eye(2).to_sparse() @ torch.ones(2, 2)


def transformer():
    nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 1), 1)
    nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, norm_first=True, batch_first=True), 1)
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, batch_first=True), 1).eval()
    with torch.no_grad():
        encoder(torch.ones(2, 3, 4), src_key_padding_mask=torch.tensor([[False, False, True], [False, True, True]]))


def softmax():
    F.softmax(torch.ones(2))
    nn.Softmax()(torch.ones(2, 2)), nn.LogSoftmax()(
        torch.ones(2))


def losses():
    nn.L1Loss(size_average=False)
    F.kl_div(torch.zeros(2), torch.ones(2))
    nn.BCELoss(reduce=True)
    F.binary_cross_entropy(torch.full((2,), 0.5), torch.ones(2), reduction="mean")


def dropout():
    nn.LSTM(1, 1, dropout=0.5)
    F.dropout2d(torch.ones(2, 2)), nn.Dropout2d()(torch.ones(2, 2))


def hooks():
    net = nn.Linear(1, 1)
    net.register_full_backward_hook(lambda *args: None)
    net(torch.ones(1)).sum().backward()
    net.register_backward_hook(lambda *args: None) if False else None
    mixed = nn.Sequential(nn.Linear(1, 1))
    mixed.register_backward_hook(lambda *args: None)
    mixed(leaf(1)).sum().backward()


def resizing():
    torch.ones(2).requires_grad_().new_empty(0)
    out = torch.ones(3)
    torch.add(torch.ones(2), 1, out=out)


def initialisation():
    nn.init.xavier_uniform(torch.empty(2, 2))
    nn.init.kaiming_uniform_(torch.empty(0, 2))
    nn.Linear(0, 1)


def storage():
    torch.ones(1).storage()
    torch.ones(1).storage().data_ptr() > 0


def checkpointing():
    from torch.utils.checkpoint import checkpoint

    checkpoint(torch.sin, torch.ones(1), use_reentrant=True)
    checkpoint(torch.sin, torch.ones(1))
    checkpoint(lambda x: x * 2, leaf(1), use_reentrant=False)


def anomaly():
    with torch.autograd.detect_anomaly():
        leaf(1).sum().backward()
    torch.autograd.set_detect_anomaly(False)


def indexing():
    torch.ones(2)[torch.tensor([1, 0], dtype=torch.uint8)]
    torch.meshgrid(torch.ones(1), torch.ones(1))


def dividing():
    torch.tensor(1) // torch.tensor(2), torch.floor_divide(torch.tensor(3), 2)
    torch.ones(1).to(torch.int) / 0
    torch.cholesky(torch.eye(2)), torch.qr(torch.eye(2))


def autocast():
    with torch.autocast("cpu", dtype=torch.float64):
        torch.ones(1) @ torch.ones(1)
    with torch.cpu.amp.autocast():
        pass
    torch.cuda.amp.GradScaler()
    with torch.autocast("cuda"):
        pass


def data_parallel():
    loader = torch.utils.data.DataLoader([1, 2], num_workers=0, pin_memory=True)
    list(loader)


def averaging():
    model = nn.BatchNorm1d(1)
    torch.optim.swa_utils.update_bn([], model)
    nn.utils.weight_norm(nn.Linear(1, 1))


def inner_helper():
    from helpers import torching

    torching.broadcast()
    torching.scalar(leaf(1))
    torching.warn_caller()


class Net(nn.Module):
    def forward(self, x):
        warnings.warn("from forward", stacklevel=2)
        warnings.warn("from the caller of the module", stacklevel=4)
        return F.mse_loss(x, torch.ones(3, 1))


def module():
    for _ in range(2):
        Net()(leaf(3))
    nn.Sequential(Net())(leaf(3)).backward()


for function in (broadcasting, clipping, scalar, non_leaf_grad, copying, degrees, scheduling, graph, transposing, complex_cast,
                 numpy_array, sparse, transformer, softmax, losses, dropout, hooks, resizing, initialisation, storage,
                 checkpointing, anomaly, indexing, dividing, autocast, data_parallel, averaging, inner_helper, module):  # fmt: skip
    attempt(function)
F.mse_loss(torch.ones(2, 1), torch.ones(2)); float(leaf(1)); (leaf(1) * 1).grad
w = leaf(1)
value = float(
    w * 2
)
total = 0.0
for _ in range(2):
    total += float(w)
torch.set_warn_always(True)
attempt(scalar)
attempt(non_leaf_grad)
attempt(graph)
print("registry:", sorted(str(key)[:90] for key in globals().get("__warningregistry__", {})))
if action == "record":
    recorder.__exit__(None, None, None)
    for w in caught:
        print(w.category.__name__, w.filename == __file__, w.lineno, str(w.message)[:90].splitlines()[0])
