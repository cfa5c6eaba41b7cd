"""`torch.backends`: flags that programs set; none changes anything here."""

from __future__ import annotations

from types import SimpleNamespace

cudnn = SimpleNamespace(deterministic=False, benchmark=False, enabled=True, is_available=lambda: False)
cuda = SimpleNamespace(matmul=SimpleNamespace(allow_tf32=False), is_built=lambda: False)
mps = SimpleNamespace(is_available=lambda: False, is_built=lambda: False)
mkldnn = SimpleNamespace(enabled=False, is_available=lambda: False)
mkl = SimpleNamespace(is_available=lambda: False)
