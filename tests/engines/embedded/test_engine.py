"""What the engine is apart from its values: self-contained, refusing what it does not cover, leaving no trace."""

from __future__ import annotations

import subprocess
import sys

import pytest

from whygrad.engines.embedded import torch as embedded
from whygrad.engines.embedded.errors import NotInEmbeddedEngine
from whygrad.engines.embedded.install import answering_to_torch


def test_it_needs_numpy_alone() -> None:
    code = (
        "import sys; from whygrad.engines.embedded import torch; torch.nn, torch.optim, torch.utils.data; "
        "print(sorted(m for m in sys.modules if m.split('.')[0] in ('torch', 'rich', 'click', 'scipy', 'sympy')))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "use",
    [
        lambda: embedded.compile(lambda x: x),
        lambda: embedded.fft,
        lambda: embedded.nn.CTCLoss,
        lambda: embedded.ones(2).to_sparse(),
        lambda: embedded.sum(embedded.ones(2), frobnicate=True),
        lambda: embedded.nn.functional.interpolate(embedded.ones(1, 1, 2, 2), size=4, mode="bicubic"),
    ],
)
def test_what_is_not_covered_says_so_and_how_to_go_on(use: object) -> None:
    with pytest.raises(NotInEmbeddedEngine, match=r"pip install torch.*--engine pytorch"):
        use()  # type: ignore[operator]


def test_a_name_that_no_torch_has_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'torch' has no attribute 'frobnicate'"):
        embedded.frobnicate  # noqa: B018


def test_import_torch_answers_inside_and_leaves_nothing_behind() -> None:
    before = {n: m for n, m in sys.modules.items() if n == "torch" or n.startswith("torch.")}
    with answering_to_torch():
        import torch
        import torch.nn.functional as F  # noqa: N812
        from torch.utils.data import DataLoader

        assert torch.__version__.endswith("+whygrad")
        assert F.relu(torch.tensor(-1.0)).item() == 0
        assert DataLoader.__module__ == "torch.utils.data.dataloader"
    after = {n: m for n, m in sys.modules.items() if n == "torch" or n.startswith("torch.")}
    assert after == before


def test_a_long_chain_does_not_overflow_the_stack() -> None:
    w = embedded.tensor(1.0, requires_grad=True)
    x = w
    for _ in range(100_000):
        x = x + 1.0
    x.backward()
    assert w.grad.item() == 1
    del x
