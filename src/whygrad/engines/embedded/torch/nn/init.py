"""`torch.nn.init`."""

from ...nn.init import *  # noqa: F403
from ...nn.init import _calculate_fan_in_and_fan_out, calculate_gain
