"""Functions that fail in a file beside the program."""

import functools


def deep(n):
    if n == 0:
        return [n][
            n + 1
        ] + deep(n)
    return deep(n - 1)


def call(function):
    return function() + 1


def decorator(argument):
    def wrap(function):
        @functools.wraps(function)
        def inner(*args, **kwargs):
            return function(*args, **kwargs)

        return inner

    return wrap


class Failing:
    def __init__(self, value):
        self.value = self.compute(value) * 2

    def compute(self, value):
        return {"a": value}["b"] if value else None


def importing():
    from helpers import broken

    return broken


def log_with_level(log, level):
    log.warning("from a helper", stacklevel=level)
