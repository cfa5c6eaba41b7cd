"""Losses as modules."""

# mypy: no-warn-return-any
from __future__ import annotations

from typing import Any

from ..ops.activation import FUNCTIONAL as F
from ..ops.losses import reduction_of
from ..tensor import Tensor
from .module import Module

_MODULE = "torch.nn.modules.loss"
LOSSES: dict[str, type[Module]] = {}


class _Loss(Module):
    """Keyword settings of the function, kept as attributes; tensors (weights) as buffers."""

    __module__ = _MODULE
    function = ""
    settings: dict[str, Any] = {}
    tensors: tuple[str, ...] = ()
    passes_reduction = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        names = list(self.settings)
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        for name in given:
            if name not in names:
                raise TypeError(f"{type(self).__name__}.__init__() got an unexpected keyword argument '{name}'")
        values = {**self.settings, **given}
        flags = values.pop("size_average", None), values.pop("reduce", None)
        if flags != (None, None):
            values["reduction"] = reduction_of("mean", *flags)
        for name, value in values.items():
            if name in self.tensors:
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)

    def forward(self, *tensors: Tensor) -> Tensor:
        settings = {n: getattr(self, n) for n in self.settings if n not in ("size_average", "reduce")}
        return F[self.function](*tensors, **settings)


def _define(
    name: str,
    function: str,
    tensors: tuple[str, ...] = (),
    first: tuple[str, ...] = (),
    last: dict[str, Any] | None = None,
    old_flags: bool = True,
    **settings: Any,
) -> None:
    order: dict[str, Any] = {}
    for n in first:
        order[n] = settings.pop(n)
    if old_flags:
        order.update(size_average=None)
        for n in list(settings):
            if n == "ignore_index":
                order[n] = settings.pop(n)
        order.update(reduce=None)
    order.update(reduction="mean", **settings, **(last or {}))
    LOSSES[name] = type(
        name,
        (_Loss,),
        {
            "__module__": _MODULE,
            "function": function,
            "settings": order,
            "tensors": tensors,
            "__doc__": f"`{function}`.",
        },
    )


_define("MSELoss", "mse_loss")
_define("L1Loss", "l1_loss")
_define("SmoothL1Loss", "smooth_l1_loss", beta=1.0)
_define("HuberLoss", "huber_loss", old_flags=False, delta=1.0)
_define(
    "CrossEntropyLoss", "cross_entropy", ("weight",), ("weight",), weight=None, ignore_index=-100, label_smoothing=0.0
)
_define("NLLLoss", "nll_loss", ("weight",), ("weight",), weight=None, ignore_index=-100)
_define("BCELoss", "binary_cross_entropy", ("weight",), ("weight",), weight=None)
_define(
    "BCEWithLogitsLoss",
    "binary_cross_entropy_with_logits",
    ("weight", "pos_weight"),
    ("weight",),
    weight=None,
    pos_weight=None,
)
_define("KLDivLoss", "kl_div", log_target=False)
_define("PoissonNLLLoss", "poisson_nll_loss", (), ("log_input", "full"), log_input=True, full=False, eps=1e-8)
_define("GaussianNLLLoss", "gaussian_nll_loss", (), ("full", "eps"), old_flags=False, full=False, eps=1e-6)
_define("HingeEmbeddingLoss", "hinge_embedding_loss", (), ("margin",), margin=1.0)
_define("MarginRankingLoss", "margin_ranking_loss", (), ("margin",), margin=0.0)
_define("SoftMarginLoss", "soft_margin_loss")
_define("MultiLabelSoftMarginLoss", "multilabel_soft_margin_loss", ("weight",), ("weight",), weight=None)
_define("MultiMarginLoss", "multi_margin_loss", ("weight",), ("p", "margin", "weight"), p=1, margin=1.0, weight=None)
_define("CosineEmbeddingLoss", "cosine_embedding_loss", (), ("margin",), margin=0.0)
_define(
    "TripletMarginLoss",
    "triplet_margin_loss",
    (),
    ("margin", "p", "eps", "swap"),
    margin=1.0,
    p=2.0,
    eps=1e-6,
    swap=False,
)
