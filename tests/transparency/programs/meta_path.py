# The finders that imports go through.
import sys

print([getattr(finder, "__name__", type(finder).__name__) for finder in sys.meta_path])

import torch

print([getattr(finder, "__name__", type(finder).__name__) for finder in sys.meta_path])
print(type(torch.__spec__), sorted(vars(torch.__spec__)), torch.__spec__.origin)
