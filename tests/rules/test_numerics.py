"""Near relatives of the numeric and precision rules: NaN, saturation, symmetry, dtypes."""

from __future__ import annotations

import pytest
from running import blamed_line, findings

FAULTY = {
    "norm by hand at zero": (
        "WG602",
        """
        import torch
        w = torch.zeros(3, requires_grad=True)
        v = torch.ones(3, requires_grad=True)
        n = (w * w).sum().pow(0.5)  # <- here
        loss = n + v.sum()
        loss.backward()
        print(w.grad)
        """,
    ),
    "pairwise distance sqrt diag": (
        "WG602",
        """
        import torch
        torch.manual_seed(0)
        x = torch.randn(10, 3, requires_grad=True)
        opt = torch.optim.SGD([x], lr=0.1)
        for i in range(3):
            d2 = ((x[:, None] - x[None]) ** 2).sum(-1)
            d = torch.sqrt(d2)  # <- here
            loss = (d - 1).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(loss)
        """,
    ),
    "std of batch of one": (
        "WG604",
        """
        import torch
        m = torch.nn.Linear(3, 2)
        x = torch.randn(1, 3)
        h = m(x)
        z = (h - h.mean(0)) / h.std(0)  # <- here
        loss = z.pow(2).sum()
        loss.backward()
        print(loss)
        """,
    ),
    "log softmax by hand overflow": (
        "WG604",
        """
        import torch
        torch.manual_seed(0)
        z = torch.tensor([[200.0, 0.0, -200.0]], requires_grad=True)
        p = torch.exp(z) / torch.exp(z).sum(1, keepdim=True)  # <- here
        loss = -torch.log(p[0, 0])
        loss.backward()
        """,
    ),
    "log of zero probability large": (
        "WG604",
        """
        import torch
        torch.manual_seed(0)
        m = torch.nn.Linear(4, 100)
        opt = torch.optim.SGD(m.parameters(), lr=0.1)
        x = torch.randn(8, 4) * 200
        y = torch.randint(100, (8,))
        for i in range(2):
            p = torch.softmax(m(x), 1)
            loss = -torch.log(p)[torch.arange(8), y].mean()  # <- here
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(loss)
        """,
    ),
    "acos cosine": (
        "WG602",
        """
        import torch
        a = torch.tensor([[1.0, 0.0], [0.0, 2.0]], requires_grad=True)
        b = torch.tensor([[1.0, 0.0], [1.0, 1.0]])
        cos = torch.nn.functional.cosine_similarity(a, b)
        ang = torch.acos(cos.clamp(-1, 1))  # <- here
        ang.mean().backward()
        print(a.grad)
        """,
    ),
    "attention fully masked": (
        "WG604",
        """
        import torch
        torch.manual_seed(0)
        q = torch.nn.Linear(4, 4)
        x = torch.randn(2, 3, 4)
        pad = torch.tensor([[True, True, False], [False, False, False]])
        s = q(x) @ x.transpose(1, 2)
        s = s.masked_fill(~pad[:, None, :], float("-inf"))
        a = torch.softmax(s, -1)  # <- here
        loss = (a @ x).pow(2).mean()
        loss.backward()
        print(q.weight.grad)
        """,
    ),
    "eigh identity": (
        "WG603",
        """
        import torch
        w = torch.ones(3, dtype=torch.float64, requires_grad=True)
        a = torch.diag(w)
        L, V = torch.linalg.eigh(a)  # <- here
        loss = (V * torch.arange(3.0).double()).sum()
        loss.backward()
        print(w.grad)
        """,
    ),
    "relu param start negative": (
        "WG605",
        """
        import torch
        w = torch.nn.Parameter(torch.tensor(-0.5))  # <- here
        b = torch.nn.Parameter(torch.tensor(0.0))
        opt = torch.optim.SGD([w, b], 0.1)
        x = torch.randn(8)
        for i in range(4):
            loss = (torch.relu(w) * x + b - 1).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    ),
    "saturated sigmoid output big": (
        "WG605",
        """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        m = nn.Linear(2, 1)
        x = torch.randn(8, 2) * 1e4
        y = torch.ones(8, 1) * 0.5
        opt = torch.optim.SGD(m.parameters(), 0.1)
        for i in range(3):
            p = torch.sigmoid(m(x))  # <- here
            loss = (p - y).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    ),
    "float labels in CE": (
        "WG702",
        """
        import torch, torch.nn as nn
        m = nn.Linear(3, 2)
        x = torch.randn(8, 3)
        y = torch.tensor([0.0, 1, 0, 1, 0, 1, 0, 1])  # <- here
        loss = nn.functional.cross_entropy(m(x), y)
        loss.backward()
        """,
    ),
    "conv double": (
        "WG702",
        """
        import torch, torch.nn as nn, numpy as np
        m = nn.Conv2d(1, 2, 3)
        img = np.random.rand(2, 1, 8, 8)
        x = torch.as_tensor(img)  # <- here
        m(x).sum().backward()
        """,
    ),
    "dead relu large lr": (
        "WG606",
        """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        m = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))
        with torch.no_grad():
            m[0].bias.fill_(-50.0)  # <- here
        opt = torch.optim.SGD(m.parameters(), 0.1)
        x = torch.randn(64, 3)
        for i in range(5):
            loss = (m(x) - 1).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    ),
    "const init big": (
        "WG609",
        """
        import torch, torch.nn as nn
        m = nn.Sequential(nn.Linear(20, 30), nn.Tanh(), nn.Linear(30, 1))
        for p in m.parameters():
            nn.init.constant_(p, 0.1)  # <- here
        opt = torch.optim.SGD(m.parameters(), 0.1)
        for i in range(3):
            loss = (m(torch.randn(8, 20)) - 1).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    ),
    "where sqrt in loop masked_fill": (
        "WG601",
        """
        import torch
        torch.manual_seed(0)
        x = torch.rand(5, requires_grad=True)
        with torch.no_grad():
            x[0] = 0.0
        d = x.sqrt()  # <- here
        d = d.masked_fill(x == 0, 0.0)
        d.sum().backward()
        print(x.grad)
        """,
    ),
    "weighted mean empty mask": (
        "WG604",
        """
        import torch, torch.nn as nn
        m = nn.Linear(3, 1)
        opt = torch.optim.SGD(m.parameters(), 0.1)
        for i in range(3):
            x = torch.randn(4, 3)
            mask = torch.ones(4) if i < 1 else torch.zeros(4)
            loss = (m(x).squeeze(1).pow(2) * mask).sum() / mask.sum()  # <- here
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    ),
    "nan data": (
        "WG604",
        """
        import torch, torch.nn as nn
        m = nn.Linear(2, 1)
        x = torch.tensor([[1.0, 2.0], [float("nan"), 1.0]])  # <- here
        loss = m(x).pow(2).mean()
        loss.backward()
        """,
    ),
}


@pytest.mark.parametrize(("code", "program"), FAULTY.values(), ids=FAULTY)
@pytest.mark.filterwarnings("ignore")
def test_the_cause_is_named_on_its_line(code: str, program: str) -> None:
    diagnosis = findings(program)
    assert not diagnosis.failed
    assert (code, blamed_line(program)) in {(one.code, one.place.line) for one in diagnosis.findings}
