# How deep the stack is, and how deep it may get.
import inspect
import sys


def depth():
    frame, n = sys._getframe(1), 0
    while frame:
        frame, n = frame.f_back, n + 1
    return n


def names():
    return [f.function for f in inspect.stack(0)[1:]]


class Probe:
    at_class = depth()

    def __add__(self, other):
        return depth()

    def __getattr__(self, name):
        return depth()

    def __getitem__(self, key):
        return depth()

    def __call__(self, *args):
        return depth()

    def __bool__(self):
        print("bool", depth())
        return True

    def __iter__(self):
        yield depth()
        yield depth()

    def __enter__(self):
        return depth()

    def __exit__(self, *args):
        print("exit", depth())

    def __setattr__(self, name, value):
        print("set", name, depth())

    def __setitem__(self, name, value):
        print("set item", depth())

    def __format__(self, spec):
        return f"format {depth()}"

    def __eq__(self, other):
        return depth()

    def __hash__(self):
        print("hash", depth())
        return 1

    def __del__(self):
        print("del", depth())

    @property
    def prop(self):
        return depth()

    def __iadd__(self, other):
        print("iadd", depth())
        return self

    def zero_(self):
        return depth()


def decorator(f):
    print("decorating", depth())
    return f


@decorator
def decorated(default=depth()):
    return default, depth(), names()


p = Probe()
print(depth(), Probe.at_class, decorated(), p + p, p.missing, p[p], p(p), p.prop, list(p), f"{p}", p == p)
assert p, "never"
if p and not p:
    pass
with p as inside:
    print(inside)
p.grad = 1
p.data = 2
p[0] = 3
p += 1
a, b = p
print(a, b, [depth() for _ in range(1)], {depth() for _ in "a"}, list(depth() for _ in "a"), (lambda: depth())(), {p: 1}[p])
print(list(map(lambda _: depth(), "a")), sorted([1, 2], key=lambda n: depth() + n), max("a", key=lambda _: depth()), eval("depth()"))
exec("print(depth())")
p.data_ = p(p(p)) + 1
print(p(p(p)) + p[p + p] + (p + p) * p.x, p.zero_(), p.grad, p.data)
del p


def deep(n=0):
    try:
        deep(n + 1)
    except RecursionError as error:
        return str(error)
    return "deeper still"


print(sys.getrecursionlimit(), deep())
sys.setrecursionlimit(200)
print(sys.getrecursionlimit(), deep())
for limit in ("x", -5, 0):
    try:
        sys.setrecursionlimit(limit)
    except (TypeError, ValueError, RecursionError) as error:
        print(type(error).__name__, error)
