"""What a module sees while it is imported."""

import inspect
import sys

NAME = __name__
COUNT = globals().get("COUNT", 0) + 1
FRAMES = [f.function for f in inspect.stack() if "importlib" not in f.filename]


def at_import():
    return NAME, __name__, sys._getframe().f_code.co_name, len(FRAMES)


def function(x):
    return x * 2


def __getattr__(name):
    if name == "lazy_attribute":
        return [name, len(name) + 1]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class Thing:
    """A thing."""

    def __init__(self, value):
        self.value = value

    def method(self):
        return self.value + 1


if __name__ == "__main__":
    print("never")
