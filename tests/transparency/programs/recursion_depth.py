# How deep a program may recurse. A tap is a call of its own, at the bottom of the recursion too.
# transparency: differs="a tap takes some of the last levels before a RecursionError"
import sys
import traceback


def reach(n=0):
    try:
        return reach(n + 1)
    except RecursionError:
        return n


def reach_through(n, f):
    return f(n + 1) if n >= 0 else n


def nested(n):
    return 1 + max(nested(n + 1), len([n]))


print(sys.getrecursionlimit(), reach())
try:
    nested(0)
except RecursionError as error:
    print(error, len(traceback.extract_tb(error.__traceback__)))
sys.setrecursionlimit(200)
print(reach(), sys.getrecursionlimit())


class Sum:
    def __init__(self, n):
        self.n = n

    def __add__(self, other):
        return Sum(self.n + 1) + other


try:
    Sum(0) + 1
except RecursionError as error:
    print(error, len(traceback.extract_tb(error.__traceback__)))


def left(frames):
    """How many frames are left between here and the limit."""
    try:
        return left(frames + 1)
    except RecursionError:
        return frames


print(left(0), [left(0) for _ in range(2)], (lambda: left(0))())
