"""`torch.nn.modules`: the classes of `torch.nn`, and the modules that they come from."""

from ...nn import activations as activation
from ...nn import containers as container
from ...nn import conv, dropout, losses, module, pooling, transformer
from ...nn import norm as batchnorm
from ...nn import recurrent as rnn
from ...nn import reshape as flatten
from ...nn.module import Module

instancenorm = normalization = batchnorm
loss, linear = losses, module
