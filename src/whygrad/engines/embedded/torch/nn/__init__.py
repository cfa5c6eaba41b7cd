"""`torch.nn`."""

from __future__ import annotations

from typing import Any

from ... import catalogue
from ...errors import not_covered
from ...nn.activations import ACTIVATIONS
from ...nn.containers import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from ...nn.conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ...nn.dropout import AlphaDropout, Dropout, Dropout1d, Dropout2d, Dropout3d
from ...nn.embedding import Embedding, EmbeddingBag
from ...nn.layers import Bilinear, Identity, Linear
from ...nn.losses import LOSSES
from ...nn.module import Module
from ...nn.norm import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    GroupNorm,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    LayerNorm,
    LocalResponseNorm,
    RMSNorm,
)
from ...nn.pooling import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveAvgPool3d,
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    AdaptiveMaxPool3d,
    AvgPool1d,
    AvgPool2d,
    AvgPool3d,
    MaxPool1d,
    MaxPool2d,
    MaxPool3d,
)
from ...nn.recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNBase, RNNCell, RNNCellBase
from ...nn.reshape import CosineSimilarity, Flatten, PairwiseDistance, PixelShuffle, Unflatten, Upsample, ZeroPad2d
from ...nn.transformer import (
    MultiheadAttention,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
)
from ...nn_parameter import Buffer, Parameter
from . import functional, init, modules, parameter, utils

globals().update(ACTIVATIONS)
globals().update(LOSSES)


def __getattr__(name: str) -> Any:
    if name in catalogue.NN:
        not_covered(f"torch.nn.{name}")
    raise AttributeError(f"module 'torch.nn' has no attribute '{name}'")


__all__ = [
    n for n in globals() if not n.startswith("_") and n not in ("annotations", "Any", "catalogue", "not_covered")
]
