"""Functions that warn in a file beside the program."""

import warnings


def warns(level):
    warnings.warn(f"helper, level {level}", stacklevel=level)
    return level


def through(level):
    return warns(level)


def deprecated():
    warnings.warn("old", DeprecationWarning, stacklevel=2)
