"""Why is this gradient what it is? Evidence for every gradient of an ordinary PyTorch program."""

__version__ = "0.1.0"
