# Data loaders with workers, other processes, threads: everything where a recorder does not follow.
# transparency: -- loaders
# transparency: -- processes
# transparency: -- threads
# transparency: -- worker-dies
import os
import sys
import threading
import traceback

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, get_worker_info, random_split


class Numbers(Dataset):
    def __init__(self, n, fail_at=None):
        self.n, self.fail_at = n, fail_at
        self.weight = torch.ones(2, requires_grad=True)

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if i == self.fail_at:
            return [i][
                i + 1
            ]
        info = get_worker_info()
        scaled = (self.weight * i).sum()
        scaled.backward()
        depth, frame = 0, sys._getframe()
        while frame:
            depth, frame = depth + 1, frame.f_back
        return {"x": scaled.detach(), "grad": self.weight.grad.clone(), "worker": -1 if info is None else info.id, "noise": torch.rand(1), "depth": depth if info else 0}


class Stream(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        for i in range(3):
            yield torch.tensor([i, info.id if info else -1])


def init(worker):
    np.random.seed(worker)
    print("worker", worker, torch.initial_seed() % 1000, np.random.rand() < 2, __name__, flush=True)


def collate(batch):
    return {key: [b[key].tolist() if torch.is_tensor(b[key]) else b[key] for b in batch] for key in batch[0]}


def loaders():
    torch.manual_seed(0)
    dataset = Numbers(6)
    for workers, context in ((0, None), (1, "fork"), (2, "fork"), (1, "spawn")):
        loader = DataLoader(dataset, batch_size=2, shuffle=True, num_workers=workers, collate_fn=collate, multiprocessing_context=context, worker_init_fn=init if workers == 1 else None, persistent_workers=workers == 2)
        for epoch in range(2 if workers == 2 else 1):
            for batch in loader:
                print(workers, context, batch)
        del loader
        print(torch.rand(1).item().hex(), dataset.weight.grad)
    print([t.tolist() for t in DataLoader(Stream(), num_workers=1)])
    try:
        list(DataLoader(Numbers(3, fail_at=1), num_workers=1))
    except IndexError:
        traceback.print_exc(file=sys.stdout)
    try:
        list(DataLoader(Numbers(3, fail_at=1)))
    except IndexError:
        traceback.print_exc(file=sys.stdout)
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, y in DataLoader(TensorDataset(torch.arange(6.0).view(6, 1), torch.ones(6, 1)), batch_size=3, num_workers=1):
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        print(loss.item().hex())
    print([list(s.indices) for s in random_split(range(4), [2, 2])])


def train(rank, weights, queue):
    torch.manual_seed(rank)
    model = nn.Linear(2, 1)
    for _ in range(3):
        loss = (model(torch.ones(1, 2)) * weights.sum()).sum()
        loss.backward()
        with torch.no_grad():
            weights += model.weight.grad.sum() * 0.01
    queue.put((rank, loss.item(), [p.grad.tolist() for p in model.parameters()], sys.argv[1:], __name__))
    if rank == 1:
        queue.close()
        queue.join_thread()
        raise ValueError(f"rank {rank}")


def processes():
    import torch.multiprocessing as mp

    weights = torch.ones(2)
    weights.share_memory_()
    print(weights.is_shared())
    for method in ("fork", "spawn"):
        context = mp.get_context(method)
        queue = context.SimpleQueue() if False else context.Queue()
        for rank in range(2):
            process = context.Process(target=train, args=(rank, weights, queue))
            process.start()
            print(queue.get())
            process.join()
            print("exit", process.exitcode, weights.tolist(), flush=True)
    try:
        mp.spawn(spawned, args=("argument",), nprocs=1)
    except mp.ProcessRaisedException as error:
        print(error)
    child = os.fork()
    if child == 0:
        w = torch.ones(1, requires_grad=True)
        (w * 2).sum().backward()
        print("forked", w.grad, flush=True)
        os._exit(4)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def spawned(rank, argument):
    w = torch.ones(2, requires_grad=True)
    print(rank, argument, (w * 3).sum().item(), flush=True)
    (w @ torch.ones(3)).backward()


def threads():
    w = torch.ones(2, requires_grad=True)
    results, lock = {}, threading.Lock()

    def work(n):
        local = torch.full((2,), float(n), requires_grad=True)
        with torch.no_grad() if n % 2 else torch.enable_grad():
            y = (local * w).sum()
        with lock:
            results[n] = (y.requires_grad, torch.is_grad_enabled(), threading.current_thread().name)
            if y.requires_grad:
                y.backward()
                results[n] += (local.grad.tolist(),)
            else:
                y.backward()

    for n in range(4):
        thread = threading.Thread(target=work, args=(n,), name=f"t{n}")
        thread.start()
        thread.join()
    print(results, w.grad)
    barrier = threading.Barrier(3)
    shared = nn.Linear(2, 2)

    def together(n):
        model = nn.Linear(2, 1)
        with torch.no_grad():
            for p in model.parameters():
                p.fill_(n + 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        barrier.wait()
        for _ in range(20):
            optimizer.zero_grad()
            loss = model(torch.ones(4, 2)).square().mean()
            loss.backward()
            optimizer.step()
            shared(torch.ones(1, 2))
        results[n] = loss.item().hex()

    workers = [threading.Thread(target=together, args=(n,)) for n in range(3)]
    [t.start() for t in workers]
    [t.join() for t in workers]
    print(dict(sorted(results.items())))
    stacks = []

    class Where(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            stacks.append((threading.current_thread().name, len(traceback.extract_stack())))
            return g

    Where.apply(w).sum().backward()
    thread = threading.Thread(target=lambda: Where.apply(w).sum().backward(), name="other")
    thread.start()
    thread.join()
    print(stacks, torch.is_grad_enabled())
    from multiprocessing.pool import ThreadPool

    with ThreadPool(2) as pool:
        print(pool.map(lambda n: torch.autograd.grad((w * n).sum(), w)[0].tolist(), range(3)))


class Dying(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, i):
        os._exit(17)


def worker_dies():
    try:
        list(DataLoader(Dying(), num_workers=1))
    except RuntimeError as error:
        print(type(error.__cause__).__name__, "exited unexpectedly" in str(error))
    raise SystemExit(3)


if __name__ == "__main__":
    {"loaders": loaders, "processes": processes, "threads": threads, "worker-dies": worker_dies}[sys.argv[1]]()
    print("end")
