"""`import torch` gives the engine inside a run, and nothing of it stays behind."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch as real

from whygrad.engines.embedded.errors import NotInEmbeddedEngine
from whygrad.engines.embedded.install import answering_to_torch
from whygrad.engines.embedded.quiet import be_quiet


def test_submodules_resolve_to_the_engine_and_back() -> None:
    with answering_to_torch():
        import torch
        import torch.nn.functional as F  # noqa: N812
        from torch.utils.data import DataLoader

        assert torch.__version__.endswith("+whygrad")
        assert torch.nn.functional is F
        assert "torch.utils.data" in sys.modules
        assert DataLoader.__module__.startswith(("torch.", "whygrad."))
    import torch as again

    assert again is real
    assert not [name for name, module in sys.modules.items() if name.startswith("torch") and module is torch]


def test_a_module_that_is_not_covered_says_so() -> None:
    with answering_to_torch(), pytest.raises(NotInEmbeddedEngine, match=r"the module torch\.fx; .*pip install torch"):
        import torch.fx  # noqa: F401


def test_numpy_warns_the_program_and_not_the_engine() -> None:
    from whygrad.engines.embedded import torch

    before = np.geterr()
    restore = be_quiet()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            torch.tensor(0.0).log()
            torch.tensor([1.0]) / torch.tensor([0.0])
            assert caught == []
            np.log(np.zeros(1))
        assert [(str(one.message), one.filename == __file__) for one in caught] == [
            ("divide by zero encountered in log", True)
        ]
    finally:
        restore()
    assert np.geterr() == before


def test_a_program_without_pytorch_leaves_no_torch_behind() -> None:
    code = (
        "import sys; from whygrad.engines.embedded.install import answering_to_torch\n"
        "with answering_to_torch():\n    import torch.nn\n"
        "print('torch' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
