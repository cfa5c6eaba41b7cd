"""`torch.nn.parameter`."""

from ...nn_parameter import Buffer, Parameter

__all__ = ["Buffer", "Parameter"]
