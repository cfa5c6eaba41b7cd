"""Near relatives of the graph rules: cuts, freed graphs, in-place writes, missing second derivatives."""

from __future__ import annotations

import pytest
from running import blamed_line, findings

FAULTY = {
    "numpy roundtrip": (
        "WG202",
        """
        import torch, numpy as np
        torch.manual_seed(0)
        enc, dec = torch.nn.Linear(4, 3), torch.nn.Linear(3, 4)
        opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], 1e-2)
        x = torch.randn(8, 4)
        for i in range(4):
            h = enc(x)
            h = torch.from_numpy(np.tanh(h.detach().numpy()))  # <- here
            loss = (dec(h) - x).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    ),
    "tensor of list of outputs": (
        "WG201",
        """
        import torch
        torch.manual_seed(0)
        nets = torch.nn.ModuleList([torch.nn.Linear(2, 1) for _ in range(3)])
        gate = torch.nn.Parameter(torch.ones(3))
        opt = torch.optim.SGD([*nets.parameters(), gate], 0.1)
        x = torch.randn(5, 2)
        for i in range(3):
            outs = [n(x).mean() for n in nets]
            t = torch.tensor(outs)  # <- here
            loss = (gate * t).sum().pow(2)
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    ),
    "data in forward": (
        "WG202",
        """
        import torch, torch.nn as nn
        class N(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.Linear(3, 3)
                self.b = nn.Linear(3, 1)
            def forward(self, x):
                h = torch.relu(self.a(x)).data  # <- here
                return self.b(h)
        n = N()
        opt = torch.optim.SGD(n.parameters(), 0.1)
        for i in range(3):
            loss = n(torch.randn(4, 3)).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    ),
    "decorator": (
        "WG202",
        """
        import torch, torch.nn as nn
        class N(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.Linear(3, 3)
                self.b = nn.Linear(3, 1)
            @torch.no_grad()  # <- here
            def embed(self, x):
                return torch.relu(self.a(x))
            def forward(self, x):
                return self.b(self.embed(x))
        n = N()
        opt = torch.optim.SGD(n.parameters(), 0.1)
        for i in range(3):
            loss = n(torch.randn(4, 3)).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    ),
    "set_grad_enabled left": (
        "WG202",
        """
        import torch, torch.nn as nn
        n = nn.Linear(3, 1)
        opt = torch.optim.SGD(n.parameters(), 0.1)
        def validate():
            torch.set_grad_enabled(False)  # <- here
            return n(torch.randn(4, 3)).mean().item()
        for i in range(2):
            loss = n(torch.randn(4, 3)).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            validate()
        """,
    ),
    "threshold accuracy as loss": (
        "WG203",
        """
        import torch, torch.nn as nn
        n = nn.Linear(3, 1)
        opt = torch.optim.SGD(n.parameters(), 0.1)
        x = torch.randn(8, 3)
        y = torch.randint(2, (8, 1)).float()
        pred = (torch.sigmoid(n(x)) > 0.5).float()  # <- here
        loss = (pred - y).abs().mean()
        loss.backward()
        """,
    ),
    "argmax loss new leaf": (
        "WG203",
        """
        import torch, torch.nn as nn
        n = nn.Linear(3, 4)
        opt = torch.optim.SGD(n.parameters(), 0.1)
        x = torch.randn(8, 3)
        y = torch.randint(4, (8,)).float()
        for i in range(3):
            pred = n(x).argmax(1).float()  # <- here
            loss = ((pred - y) ** 2).mean()
            loss.requires_grad = True
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    ),
    "soft to hard sign": (
        "WG217",
        """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        enc, dec = nn.Linear(4, 6), nn.Linear(6, 4)
        opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], 1e-2)
        x = torch.randn(32, 4)
        for i in range(4):
            code = torch.sign(enc(x))  # <- here
            loss = (dec(code) - x).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    ),
    "item reg": (
        "WG205",
        """
        import torch, torch.nn as nn
        n = nn.Linear(3, 1)
        opt = torch.optim.SGD(n.parameters(), 0.1)
        for i in range(3):
            x = torch.randn(8, 3)
            l2 = sum(p.pow(2).sum().item() for p in n.parameters())  # <- here
            loss = n(x).pow(2).mean() + 0.1 * l2
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    ),
    "penalty detach": (
        "WG205",
        """
        import torch, torch.nn as nn
        n = nn.Linear(3, 1)
        opt = torch.optim.SGD(n.parameters(), 0.1)
        for i in range(3):
            x = torch.randn(8, 3)
            reg = n.weight.detach().abs().sum()  # <- here
            loss = n(x).pow(2).mean() + 0.1 * reg
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    ),
    "hvp": (
        "WG206",
        """
        import torch
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        v = torch.tensor([1.0, 0.0])
        loss = (w ** 3).sum()
        g, = torch.autograd.grad(loss, w)  # <- here
        hv = torch.autograd.grad((g * v).sum(), w)
        """,
    ),
    "pinn partial": (
        "WG206",
        """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
        opt = torch.optim.Adam(net.parameters(), 1e-2)
        for i in range(4):
            t = torch.rand(16, 1, requires_grad=True)
            u = net(t)
            ut = torch.autograd.grad(u.sum(), t)[0]  # <- here
            loss = (ut + net(t)).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    ),
    "pinn leakyrelu class functional": (
        "WG208",
        """
        import torch, torch.nn as nn, torch.nn.functional as F
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.l1 = nn.Linear(1, 16)
                self.l2 = nn.Linear(16, 1)
            def forward(self, x):
                return self.l2(F.leaky_relu(self.l1(x)))  # <- here
        net = Net()
        x = torch.rand(32, 1, requires_grad=True)
        u = net(x)
        du, = torch.autograd.grad(u, x, torch.ones_like(u), create_graph=True)
        ddu, = torch.autograd.grad(du, x, torch.ones_like(du), create_graph=True)
        loss = (ddu - 1).pow(2).mean()
        loss.backward()
        """,
    ),
    "hard - soft + soft": (
        "WG216",
        """
        import torch
        torch.manual_seed(0)
        logits = torch.nn.Parameter(torch.zeros(4))
        emb = torch.nn.Parameter(torch.randn(4, 2))
        opt = torch.optim.Adam([logits, emb], 0.1)
        for i in range(3):
            soft = torch.softmax(logits, 0)
            hard = torch.zeros(4)
            hard[soft.argmax()] = 1.0
            w = soft + (hard - soft)  # <- here
            loss = (w @ emb - 1).pow(2).sum()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    ),
    "queue keeps graph": (
        "WG210",
        """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        enc = nn.Linear(3, 2)
        opt = torch.optim.SGD(enc.parameters(), 0.1)
        bank = torch.zeros(0, 2)
        for i in range(3):
            z = enc(torch.randn(4, 3))
            loss = (z @ bank.T).sum() + z.pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            bank = torch.cat([bank, z])[-8:]  # <- here
        """,
    ),
    "prev output list": (
        "WG210",
        """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        m = nn.Linear(3, 2)
        opt = torch.optim.SGD(m.parameters(), 0.1)
        hist = []
        for i in range(4):
            out = m(torch.randn(4, 3))
            target = hist[-1] if hist else torch.zeros(4, 2)
            loss = (out - target).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            hist.append(out)  # <- here
        """,
    ),
    "lstm state tuple": (
        "WG210",
        """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        rnn = nn.LSTM(3, 4, batch_first=True)
        hd = nn.Linear(4, 1)
        opt = torch.optim.SGD([*rnn.parameters(), *hd.parameters()], 0.1)
        state = None
        for i in range(3):
            out, state = rnn(torch.randn(2, 5, 3), state)  # <- here
            loss = hd(out).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    ),
    "features computed once": (
        "WG210",
        """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        enc, head = nn.Linear(3, 4), nn.Linear(4, 1)
        opt = torch.optim.SGD([*enc.parameters(), *head.parameters()], 0.1)
        x = torch.randn(8, 3)
        feat = enc(x).tanh()  # <- here
        for i in range(3):
            loss = head(feat).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    ),
    "retain graph with step": (
        "WG211",
        """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        m = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
        opt = torch.optim.SGD(m.parameters(), 0.1)
        out = m(torch.randn(8, 3))
        for k in range(2):
            opt.zero_grad()
            out[:, k].pow(2).mean().backward(retain_graph=True)
            opt.step()  # <- here
        """,
    ),
    "relu_ on exp": (
        "WG211",
        """
        import torch
        w = torch.randn(4, requires_grad=True)
        h = torch.exp(w)
        h.clamp_(max=1.0)  # <- here
        h.sum().backward()
        """,
    ),
    "moving average of buffer in place": (
        "WG211",
        """
        import torch, torch.nn as nn
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.l = nn.Linear(3, 3)
                self.register_buffer("scale", torch.ones(3))
            def forward(self, x):
                y = self.l(x) * self.scale
                self.scale.mul_(0.9).add_(0.1 * y.detach().std(0))  # <- here
                return y
        m = M()
        m(torch.randn(8, 3)).sum().backward()
        """,
    ),
    "running avg no pass": (
        "WG213",
        """
        import torch, torch.nn as nn
        m = nn.Linear(3, 1)
        opt = torch.optim.SGD(m.parameters(), 0.1)
        losses = []
        for i in range(6):
            loss = m(torch.randn(8, 3)).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss)  # <- here
        print(sum(losses) / len(losses))
        """,
    ),
    "ema loss": (
        "WG213",
        """
        import torch, torch.nn as nn
        m = nn.Linear(3, 1)
        opt = torch.optim.SGD(m.parameters(), 0.1)
        ema = None
        for i in range(6):
            loss = m(torch.randn(8, 3)).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            ema = loss if ema is None else 0.9 * ema + 0.1 * loss  # <- here
        print(float(ema))
        """,
    ),
    "total before backward": (
        "WG213",
        """
        import torch, torch.nn as nn
        m = nn.Linear(3, 1)
        opt = torch.optim.SGD(m.parameters(), 0.1)
        stats = {"loss": 0}
        for i in range(6):
            loss = m(torch.randn(8, 3)).pow(2).mean()
            stats["loss"] += loss  # <- here
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    ),
    "validation graph": (
        "WG213",
        """
        import torch, torch.nn as nn
        m = nn.Linear(3, 1)
        m.eval()
        val = 0
        for i in range(6):
            val += m(torch.randn(8, 3)).pow(2).mean()  # <- here
        print(val / 6)
        """,
    ),
    "cuda-like to": (
        "WG214",
        """
        import torch
        w = torch.randn(3, requires_grad=True).to(torch.float64)  # <- here
        opt = torch.optim.SGD([w], 0.1)
        """,
    ),
    "custom tanh grad forgot": (
        "WG218",
        """
        import torch
        class MyTanh(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                y = torch.tanh(x)
                ctx.save_for_backward(x)
                return y
            @staticmethod
            def backward(ctx, grad):
                y, = ctx.saved_tensors
                return grad * (1 - y * y)  # <- here
        x = torch.linspace(-2, 2, 5).requires_grad_()
        l = torch.nn.Linear(5, 1)
        l(MyTanh.apply(x)).sum().backward()
        """,
    ),
    "frozen typo in loop": (
        "WG219",
        """
        import torch, torch.nn as nn
        m = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
        for p in m[0].parameters():
            p.require_grad = False  # <- here
        m(torch.randn(2, 3)).sum().backward()
        """,
    ),
    "unused head output": (
        "WG221",
        """
        import torch, torch.nn as nn
        class N(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.Linear(3, 4)
                self.skip = nn.Linear(3, 4)
                self.o = nn.Linear(4, 1)
            def forward(self, x):
                h = torch.relu(self.a(x))
                s = self.skip(x)  # <- here
                return self.o(h)
        n = N()
        opt = torch.optim.SGD(n.parameters(), 0.1)
        for i in range(3):
            loss = n(torch.randn(8, 3)).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    ),
    "gan no detach": (
        "WG210",
        """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        G, D = nn.Linear(2, 2), nn.Linear(2, 1)
        og, od = torch.optim.SGD(G.parameters(), 0.1), torch.optim.SGD(D.parameters(), 0.1)
        for i in range(3):
            fake = G(torch.randn(4, 2))
            ld = D(fake).mean() - D(torch.randn(4, 2)).mean()  # <- here
            od.zero_grad()
            ld.backward()
            od.step()
            lg = -D(fake).mean()
            og.zero_grad()
            lg.backward()
            og.step()
        """,
    ),
    "setitem dup": (
        "WG209",
        """
        import torch
        grid = torch.zeros(3, 3)
        ij = torch.tensor([[0, 1], [0, 1], [2, 2]])
        w = torch.ones(3, requires_grad=True)
        grid[ij[:, 0], ij[:, 1]] += w  # <- here
        grid.sum().backward()
        """,
    ),
    "scatter_ instead of scatter_add": (
        "WG209",
        """
        import torch
        idx = torch.tensor([0, 0, 1])
        w = torch.ones(3, requires_grad=True)
        out = torch.zeros(2).scatter(0, idx, w)  # <- here
        out.sum().backward()
        """,
    ),
    "index_put no accumulate": (
        "WG209",
        """
        import torch
        idx = torch.tensor([0, 0, 1])
        w = torch.ones(3, requires_grad=True)
        out = torch.zeros(2).index_put((idx,), w)  # <- here
        out.sum().backward()
        """,
    ),
    "state no_grad each step": (
        "WG204",
        """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        cell, hd = nn.RNNCell(1, 8), nn.Linear(8, 1)
        opt = torch.optim.Adam([*cell.parameters(), *hd.parameters()], 0.01)
        for i in range(3):
            x = torch.randn(16, 6, 1)
            h = torch.zeros(16, 8)
            for t in range(6):
                h = cell(x[:, t], h)
                h = h.data  # <- here
            loss = (hd(cell(x[:, -1], h)) - x[:, 0]).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    ),
    "state detached each step, losses summed": (
        "WG204",
        """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        cell, hd = nn.RNNCell(1, 8), nn.Linear(8, 1)
        opt = torch.optim.Adam([*cell.parameters(), *hd.parameters()], 0.01)
        for i in range(3):
            x = torch.randn(16, 6, 1)
            h = torch.zeros(16, 8)
            loss = 0
            for t in range(6):
                h = cell(x[:, t], h.detach())  # <- here
                loss = loss + (hd(h) - x[:, 0]).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    ),
    "ppo-like: reinforce with rsample tanh": (
        "WG207",
        """
        import torch, torch.nn as nn
        from torch.distributions import Normal
        torch.manual_seed(0)
        pi = nn.Linear(3, 2)
        opt = torch.optim.Adam(pi.parameters(), 0.01)
        for i in range(3):
            s = torch.randn(16, 3)
            d = Normal(pi(s), 0.5)
            a = d.rsample()  # <- here
            r = -(a.detach() ** 2).sum(1)
            lp = d.log_prob(a).sum(1)
            loss = -(lp * (r - r.mean())).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    ),
}

CORRECT = {
    "evaluation metrics kept": """
        import torch, torch.nn as nn
        m = nn.Linear(3, 2)
        opt = torch.optim.SGD(m.parameters(), 0.1)
        accs = []
        for i in range(5):
            x, y = torch.randn(8, 3), torch.randint(2, (8,))
            out = m(x)
            loss = nn.functional.cross_entropy(out, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            accs.append((out.argmax(1) == y).float().mean())
        """,
    "trig rollouts": """
        import torch, torch.nn as nn
        m = nn.Linear(3, 3)
        opt = torch.optim.SGD(m.parameters(), 0.1)
        x0 = torch.randn(8, 3)
        for i in range(3):
            x = x0
            loss = 0
            for k in range(4):
                x = x + 0.1 * torch.tanh(m(x))
                loss = loss + x.pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    "RAFT-like": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        m = nn.Linear(4, 2)
        opt = torch.optim.SGD(m.parameters(), 0.1)
        t = torch.randn(8, 2)
        for i in range(3):
            c = torch.zeros(8, 2)
            loss = 0
            x = torch.randn(8, 2)
            for k in range(4):
                c = c.detach()
                c = c + m(torch.cat([c, x], 1))
                loss = loss + 0.8 ** (3 - k) * (c - t).abs().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    "lora zero init": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        base = nn.Linear(4, 4).requires_grad_(False)
        A = nn.Parameter(torch.randn(2, 4) * 0.1)
        B = nn.Parameter(torch.zeros(4, 2))
        opt = torch.optim.Adam([A, B], 0.01)
        for i in range(4):
            x = torch.randn(8, 4)
            loss = (base(x) + x @ A.T @ B.T - x).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    "hinge": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        m = nn.Linear(2, 1)
        opt = torch.optim.SGD(m.parameters(), 0.1)
        with torch.no_grad():
            m.weight.copy_(torch.tensor([[5.0, 5.0]]))
            m.bias.zero_()
        x = torch.rand(8, 2) + 1
        y = torch.ones(8)
        for i in range(3):
            loss = torch.relu(1 - y * m(x).squeeze(1)).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    "scaler inf skip manual": """
        import torch, torch.nn as nn
        m = nn.Linear(2, 1)
        opt = torch.optim.SGD(m.parameters(), 0.01)
        for i in range(4):
            x = torch.randn(4, 2)
            loss = m(x).pow(2).mean()
            if not torch.isfinite(loss):
                continue
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    "straight through gumbel": """
        import torch, torch.nn.functional as F
        torch.manual_seed(0)
        l = torch.zeros(4, 3, requires_grad=True)
        v = torch.randn(3, requires_grad=True)
        opt = torch.optim.SGD([l, v], 0.1)
        for i in range(3):
            y = F.gumbel_softmax(l, tau=1.0, hard=True)
            loss = (y @ v).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    "early layers multi optim": """
        import torch, torch.nn as nn
        a, b = nn.Linear(2, 2), nn.Linear(2, 1)
        oa, ob = torch.optim.SGD(a.parameters(), 0.1), torch.optim.SGD(b.parameters(), 0.1)
        for i in range(4):
            x = torch.randn(4, 2)
            if i % 2:
                loss = b(a(x).detach()).pow(2).mean()
                ob.zero_grad()
                loss.backward()
                ob.step()
            else:
                loss = b(a(x)).pow(2).mean()
                oa.zero_grad()
                ob.zero_grad()
                loss.backward()
                oa.step()
        """,
    "fold attention -inf causal": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        q = nn.Linear(4, 4)
        opt = torch.optim.SGD(q.parameters(), 0.1)
        m = torch.full((3, 3), float("-inf")).triu(1)
        for i in range(3):
            x = torch.randn(2, 3, 4)
            a = (q(x) @ x.transpose(1, 2) + m).softmax(-1)
            loss = (a @ x).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
}


@pytest.mark.parametrize(("code", "program"), FAULTY.values(), ids=FAULTY)
@pytest.mark.filterwarnings("ignore")
def test_the_cause_is_named_on_its_line(code: str, program: str) -> None:
    diagnosis = findings(program)
    assert not diagnosis.failed
    assert (code, blamed_line(program)) in {(one.code, one.place.line) for one in diagnosis.findings}


@pytest.mark.parametrize("program", CORRECT.values(), ids=CORRECT)
@pytest.mark.filterwarnings("ignore")
def test_a_correct_program_is_left_alone(program: str) -> None:
    diagnosis = findings(program)
    assert not diagnosis.failed
    assert not [one for one in diagnosis.findings if one.code.startswith(("WG2", "WG6", "WG7"))]
