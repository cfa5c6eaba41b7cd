"""Multi-head attention and the transformer's encoder and decoder layers."""

# mypy: no-warn-return-any
from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np

from .. import dtypes
from ..errors import not_covered
from ..nn_parameter import Parameter
from ..ops.activation import FUNCTIONAL as F
from ..ops.define import TORCH
from ..tensor import Tensor, wrap
from ..warn import warn
from . import init
from .containers import ModuleList
from .dropout import Dropout
from .layers import Linear, NonDynamicallyQuantizableLinear, empty
from .module import Module
from .norm import LayerNorm


class MultiheadAttention(Module):
    """Attention in several subspaces at once."""

    __module__ = "torch.nn.modules.activation"

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: Any = None,
        vdim: Any = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and "
                f"num_heads={num_heads} instead"
            )
        if add_bias_kv or add_zero_attn or kdim not in (None, embed_dim) or vdim not in (None, embed_dim):
            not_covered("add_bias_kv, add_zero_attn, kdim and vdim of MultiheadAttention")
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.kdim = self.vdim = embed_dim
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        self.in_proj_weight = Parameter(empty(3 * embed_dim, embed_dim, dtype=dtype))
        if bias:
            self.in_proj_bias = Parameter(empty(3 * embed_dim, dtype=dtype))
        else:
            self.register_parameter("in_proj_bias", None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, dtype=dtype)
        init.xavier_uniform_(self.in_proj_weight)
        if bias:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> Any:
        batched = query.dim() == 3
        if query.dim() not in (2, 3):
            raise AssertionError(
                f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D query tensor"
            )
        if is_causal and attn_mask is None:
            raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
        q, k, v = query, key, value
        if not batched:
            q, k, v = (t.unsqueeze(1) for t in (q, k, v))
            if key_padding_mask is not None:
                key_padding_mask = key_padding_mask.unsqueeze(0)
        elif self.batch_first:
            turned = {id(t): t.transpose(1, 0) for t in (q, k, v)}  # the same tensor stays the same
            q, k, v = (turned[id(t)] for t in (q, k, v))
        length, batch, width = q.shape
        source = k.shape[0]
        if width != self.embed_dim:
            raise AssertionError(f"was expecting embedding dimension of {self.embed_dim}, but got {width}")
        q, k, v = _project(q, k, v, self.in_proj_weight, self.in_proj_bias)
        heads, size = self.num_heads, self.head_dim
        q = q.view(length, batch * heads, size).transpose(0, 1)
        k = k.view(source, batch * heads, size).transpose(0, 1)
        v = v.view(source, batch * heads, size).transpose(0, 1)
        mask = _as_float_mask(attn_mask, q.dtype)
        if mask is not None and mask.dim() == 2:
            mask = mask.unsqueeze(0)
        padding = _as_float_mask(key_padding_mask, q.dtype)
        if padding is not None:
            padding = padding.view(batch, 1, 1, source).expand(-1, heads, -1, -1).reshape(batch * heads, 1, source)
            mask = padding if mask is None else mask + padding
        dropped = self.dropout if self.training else 0.0
        weights = None
        if need_weights:
            scaled, kt = q * math.sqrt(1.0 / size), k.transpose(-2, -1)
            weights = (scaled.bmm(kt) if mask is None else TORCH["baddbmm"](mask, scaled, kt)).softmax(-1)
            if dropped > 0.0:
                weights = F["dropout"](weights, dropped)
            out = weights.bmm(v).transpose(0, 1).reshape(length * batch, width)
        else:
            if mask is not None:
                mask = mask.unsqueeze(0) if mask.shape[0] == 1 else mask.view(batch, heads, -1, source)
            q, k, v = (t.view(batch, heads, n, size) for t, n in ((q, length), (k, source), (v, source)))
            out = F["scaled_dot_product_attention"](q, k, v, mask, dropped)
            out = out.permute(2, 0, 1, 3).reshape(batch * length, width)
        out = F["linear"](out, self.out_proj.weight, self.out_proj.bias).view(length, batch, width)
        shown = None
        if weights is not None:
            shown = weights.view(batch, heads, length, source)
            if average_attn_weights:
                shown = shown.mean(1)
            if not batched:
                shown = shown.squeeze(0)
        if not batched:
            return out.squeeze(1), shown
        return (out.transpose(1, 0) if self.batch_first else out), shown


def _project(q: Tensor, k: Tensor, v: Tensor, weight: Tensor, bias: Any) -> tuple[Tensor, ...]:
    """Queries, keys and values: one product where they come from the same tensor."""
    width = q.shape[-1]
    if k is not v:
        biases = (None,) * 3 if bias is None else bias.chunk(3)
        return tuple(F["linear"](t, w, b) for t, w, b in zip((q, k, v), weight.chunk(3), biases, strict=True))
    if q is k:
        packed = _apart(F["linear"](q, weight, bias), 3, width)
        return packed[0], packed[1], packed[2]
    first, rest = weight.split([width, 2 * width])
    first_bias, rest_bias = (None, None) if bias is None else bias.split([width, 2 * width])
    q = F["linear"](q, first, first_bias)
    packed = _apart(F["linear"](k, rest, rest_bias), 2, width)
    return q, packed[0], packed[1]


def _apart(packed: Tensor, parts: int, width: int) -> Tensor:
    """The parts of the last dimension as a first one."""
    return packed.unflatten(-1, (parts, width)).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous()


def _as_float_mask(mask: Any, d: Any) -> Any:
    if mask is None or mask.dtype.is_floating_point:
        return mask
    if mask.dtype is not dtypes.bool_:
        raise AssertionError("only bool and floating types of mask are supported")
    return wrap(np.where(mask._a, -np.inf, 0.0).astype(d.storage), d)


def _activation(name: Any) -> Any:
    if callable(name):
        return name
    if name in ("relu", "gelu"):
        return F[name]
    raise RuntimeError(f"activation should be relu/gelu, not {name}")


class TransformerEncoderLayer(Module):
    """Self-attention, then a feed-forward network, each with a residual and a normalisation."""

    __module__ = "torch.nn.modules.transformer"

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, dtype=dtype
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, dtype=dtype)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, dtype=dtype)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, dtype=dtype)
        self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout)
        self.activation = _activation(activation)

    def forward(
        self, src: Tensor, src_mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool = False
    ) -> Tensor:
        x = src
        if self.norm_first:
            x = x + self._attend(self.norm1(x), src_mask, src_key_padding_mask)
            return x + self._feed(self.norm2(x))
        x = self.norm1(x + self._attend(x, src_mask, src_key_padding_mask))
        return self.norm2(x + self._feed(x))

    def _attend(self, x: Tensor, mask: Any, padding: Any) -> Tensor:
        return self.dropout1(self.self_attn(x, x, x, attn_mask=mask, key_padding_mask=padding, need_weights=False)[0])

    def _feed(self, x: Tensor) -> Tensor:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerDecoderLayer(Module):
    """Self-attention, attention to the memory, feed-forward."""

    __module__ = "torch.nn.modules.transformer"

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, batch_first=batch_first, bias=bias, dtype=dtype
        )
        self.multihead_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, batch_first=batch_first, bias=bias, dtype=dtype
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, dtype=dtype)
        self.norm_first = norm_first
        self.norm1, self.norm2, self.norm3 = (
            LayerNorm(d_model, eps=layer_norm_eps, bias=bias, dtype=dtype) for _ in range(3)
        )
        self.dropout1, self.dropout2, self.dropout3 = Dropout(dropout), Dropout(dropout), Dropout(dropout)
        self.activation = _activation(activation)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        x = tgt
        if self.norm_first:
            x = x + self._self(self.norm1(x), tgt_mask, tgt_key_padding_mask)
            x = x + self._cross(self.norm2(x), memory, memory_mask, memory_key_padding_mask)
            return x + self._feed(self.norm3(x))
        x = self.norm1(x + self._self(x, tgt_mask, tgt_key_padding_mask))
        x = self.norm2(x + self._cross(x, memory, memory_mask, memory_key_padding_mask))
        return self.norm3(x + self._feed(x))

    def _self(self, x: Tensor, mask: Any, padding: Any) -> Tensor:
        return self.dropout1(self.self_attn(x, x, x, attn_mask=mask, key_padding_mask=padding, need_weights=False)[0])

    def _cross(self, x: Tensor, memory: Tensor, mask: Any, padding: Any) -> Tensor:
        return self.dropout2(
            self.multihead_attn(x, memory, memory, attn_mask=mask, key_padding_mask=padding, need_weights=False)[0]
        )

    def _feed(self, x: Tensor) -> Tensor:
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoder(Module):
    """A stack of copies of one encoder layer."""

    __module__ = "torch.nn.modules.transformer"

    def __init__(
        self,
        encoder_layer: Any,
        num_layers: int,
        norm: Any = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm
        self.enable_nested_tensor = enable_nested_tensor
        why = ""
        if isinstance(encoder_layer, TransformerEncoderLayer) and enable_nested_tensor:
            if encoder_layer.norm_first:
                why = "encoder_layer.norm_first was True"
            elif not encoder_layer.self_attn.batch_first:
                why = (
                    "encoder_layer.self_attn.batch_first was not True(use batch_first for better inference performance)"
                )
            elif encoder_layer.self_attn.num_heads % 2 == 1:
                why = "encoder_layer.self_attn.num_heads is odd"
            if why:
                warn(f"enable_nested_tensor is True, but self.use_nested_tensor is False because {why}")
        self.use_nested_tensor, self.mask_check = enable_nested_tensor and not why, mask_check

    def forward(self, src: Tensor, mask: Any = None, src_key_padding_mask: Any = None, is_causal: Any = None) -> Tensor:
        out = src
        for layer in self.layers:
            out = layer(out, src_mask=mask, src_key_padding_mask=src_key_padding_mask)
        return out if self.norm is None else self.norm(out)


class TransformerDecoder(Module):
    """A stack of copies of one decoder layer."""

    __module__ = "torch.nn.modules.transformer"

    def __init__(self, decoder_layer: Any, num_layers: int, norm: Any = None) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(decoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: Any = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        out = tgt
        for layer in self.layers:
            out = layer(out, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        return out if self.norm is None else self.norm(out)
