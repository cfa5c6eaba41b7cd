"""What a module of `torch.nn` expects of its input, and which expectation a call broke."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec


class Given(msgspec.Struct, frozen=True, eq=False):
    """A module and the input of its call that failed."""

    module: Any
    tensor: Any
    torch: Any

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.shape)

    @property
    def dimensions(self) -> int:
        return len(self.shape)


Contract = Callable[[Given], str]
"""The expectation that is not met, as the end of a sentence that starts with the module; empty if it is met."""


def broken_contract(module: Any, args: tuple[Any, ...], torch: Any) -> str:
    """Which expectation of a known module its arguments do not meet; empty if none of those known here."""
    contracts = next((kept for kind, kept in _contracts(torch) if isinstance(module, kind)), ())
    tensors = [item for item in args if isinstance(item, torch.Tensor)]
    if not contracts or not tensors or not type(module).forward.__module__.startswith("torch.nn."):
        return ""
    for contract in (*contracts, _dtype):
        broken = contract(Given(module, tensors[0], torch))
        if broken:
            return f"{type(module).__name__}({configured(module)}) {broken}"
    return ""


def _contracts(torch: Any) -> list[tuple[Any, tuple[Contract, ...]]]:
    """The contracts of each kind of module. A module of the user's own has none, whatever its attributes are called."""
    nn = torch.nn
    return [
        (nn.Linear, (_last("in_features"),)),
        (nn.Bilinear, (_last("in1_features"),)),
        (nn.RNNBase, (_dimension_of((2, 3)), _last("input_size"))),
        (nn.RNNCellBase, (_dimension_of((1, 2)), _last("input_size"))),
        (nn.MultiheadAttention, (_last("embed_dim"),)),
        (nn.modules.conv._ConvNd, (_spatial, _channels("in_channels"), _kernel)),
        (nn.BatchNorm1d, (_dimension_of((2, 3)), _second("num_features"), _several_values)),
        (nn.BatchNorm2d, (_dimension_of((4,)), _second("num_features"), _several_values)),
        (nn.BatchNorm3d, (_dimension_of((5,)), _second("num_features"), _several_values)),
        (nn.GroupNorm, (_second("num_channels"),)),
        (nn.LayerNorm, (_normalized,)),
        (nn.Embedding, (_indices,)),
        (nn.EmbeddingBag, (_indices,)),
    ]


def _last(attribute: str) -> Contract:
    def broken(given: Given) -> str:
        wanted, got = getattr(given.module, attribute), given.shape[-1] if given.shape else None
        return (
            "" if got == wanted else f"expects {wanted} features in the last dimension, got {got} (shape {given.shape})"
        )

    return broken


def _second(attribute: str) -> Contract:
    def broken(given: Given) -> str:
        wanted, got = getattr(given.module, attribute), given.shape[1] if given.dimensions > 1 else None
        return "" if got == wanted else f"expects {wanted} channels in dimension 1, got {got} (shape {given.shape})"

    return broken


def _dimension_of(allowed: tuple[int, ...]) -> Contract:
    wanted = " or ".join(map(str, allowed))

    def broken(given: Given) -> str:
        return "" if given.dimensions in allowed else f"expects {wanted} dimensions, got {given.dimensions}"

    return broken


def _spatial(given: Given) -> str:
    spatial = len(given.module.kernel_size)
    if given.dimensions in (spatial + 1, spatial + 2):
        return ""
    return f"expects {spatial + 2} dimensions (or {spatial + 1} without a batch), got {given.dimensions}"


def _channels(attribute: str) -> Contract:
    def broken(given: Given) -> str:
        position = given.dimensions - len(given.module.kernel_size) - 1
        wanted, got = getattr(given.module, attribute), given.shape[position]
        return "" if got == wanted else f"expects {wanted} channels in dimension {position}, got {got}"

    return broken


def _kernel(given: Given) -> str:
    """The padded input of a convolution is at least as large as the dilated kernel."""
    module = given.module
    if module.transposed or isinstance(module.padding, str):
        return ""
    kernel = module.kernel_size
    space = given.shape[-len(kernel) :]
    reach = [dilation * (size - 1) + 1 for size, dilation in zip(kernel, module.dilation, strict=True)]
    room = [size + 2 * padding for size, padding in zip(space, module.padding, strict=True)]
    if all(have >= need for have, need in zip(room, reach, strict=True)):
        return ""
    return f"has a kernel of {tuple(reach)} that does not fit the padded input of {tuple(room)}"


def _several_values(given: Given) -> str:
    if not given.module.training or given.tensor.numel() > given.shape[1]:
        return ""
    return f"expects more than 1 value per channel when training, got shape {given.shape}"


def _normalized(given: Given) -> str:
    wanted = tuple(given.module.normalized_shape)
    if given.shape[max(given.dimensions - len(wanted), 0) :] == wanted:
        return ""
    return f"expects the last dimensions {wanted}, got shape {given.shape}"


def _indices(given: Given) -> str:
    if given.tensor.dtype not in (given.torch.int64, given.torch.int32):
        return f"expects integer indices, got {_short(given.tensor.dtype)}"
    rows = given.module.num_embeddings
    if given.tensor.device.type != "cpu" or not given.tensor.numel():
        return ""
    low, high = int(given.tensor.min()), int(given.tensor.max())
    return "" if low >= 0 and high < rows else f"expects indices from 0 to {rows - 1}, got {low} to {high}"


def _dtype(given: Given) -> str:
    weight = next(iter(given.module._parameters.values()), None)
    if weight is None or isinstance(given.module, given.torch.nn.Embedding | given.torch.nn.EmbeddingBag):
        return ""
    if given.tensor.dtype == weight.dtype or given.torch.is_autocast_enabled(given.tensor.device.type):
        return ""
    got = _short(given.tensor.dtype)
    return f"has {_short(weight.dtype)} weights, got {'an' if got.startswith('i') else 'a'} {got} input"


def _short(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def configured(module: Any) -> str:
    """How one of torch's own modules was set up; a class of the user's is not asked, since that runs its code."""
    return str(module.extra_repr()) if type(module).__module__.startswith("torch.") else ""
