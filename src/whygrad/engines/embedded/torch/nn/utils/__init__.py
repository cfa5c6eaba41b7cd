"""`torch.nn.utils`."""

from ....nn.utils import (
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
    parameters_to_vector,
    spectral_norm,
    vector_to_parameters,
    weight_norm,
)

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
    "parameters_to_vector",
    "spectral_norm",
    "vector_to_parameters",
    "weight_norm",
]
