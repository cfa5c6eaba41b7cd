"""The embedded engine: the part of the torch API that gradient work uses, on NumPy alone.

PyTorch is its only judge: for what is covered, values, dtypes, errors (type and text), warnings and graph rules are
PyTorch's, and what is not covered raises `NotInEmbeddedEngine`. The namespace can be used on its own::

    from whygrad.engines.embedded import torch

A reading order: `tensor` (what a tensor is), `graph` (nodes and what they save), `backward` (how gradients flow),
then `ops/` (each operation with its backward rule beside it) and `torch/` (the names users write).
"""
