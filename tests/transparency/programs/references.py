# Life and death of objects: reference counts, collectors, finalisers, what frames keep alive.
import copy
import gc
import inspect
import sys
import weakref


class Thing:
    def __init__(self, name):
        self.name = name

    def __call__(self, *args):
        return Thing(self.name + "()")

    def __add__(self, other):
        return Thing(f"{self.name}+")

    def __del__(self):
        print("gone", self.name)


def count(value):
    return sys.getrefcount(value)


a = Thing("a")
print(sys.getrefcount(a), count(a), len(gc.get_referrers(a)))
b = [a, a]
print(sys.getrefcount(a), count(b[0]), sys.getrefcount(Thing("t")))
b = a + a
print(sys.getrefcount(b), weakref.getweakrefcount(b))
reference = weakref.ref(b, lambda _: print("callback"))
del b
print(reference())
(Thing("x") + Thing("y"))(Thing("z"))
print("statement over")


def returning():
    first = Thing("first")
    second = first + first
    del first
    print("in returning")
    return second


def failing():
    kept = Thing("kept by the traceback")
    raise ValueError(len(kept.name))


returning()
value = returning()
value = None
try:
    failing()
except ValueError as error:
    print("handler", error)
print("handler over")
try:
    failing()
except ValueError as error:
    saved = error
print("saved")
del saved
print("saved is deleted")


def generator():
    item = Thing("in a generator")
    yield item
    print("resumed")


running = generator()
next(running)
del running
for item in [Thing("i0"), Thing("i1")]:
    print("loop", item.name)
del item
print("loop over")
[print(thing.name) for thing in [Thing("c0"), Thing("c1")]]
print({thing.name: 1 for thing in map(Thing, "de")})


class Node:
    def __init__(self):
        self.me = self


gc.collect()
gc.disable()
watch = weakref.ref(Node())
print(watch() is not None)
gc.collect()
print(watch() is None)
gc.enable()
before = len(gc.get_objects())
kept = [Thing(str(n)) for n in range(3)]
print(len(gc.get_objects()) - before >= 3, sum(isinstance(o, Thing) for o in gc.get_objects()))
copied = copy.deepcopy(kept)
print(len(copied), sum(isinstance(o, Thing) for o in gc.get_objects()))
del copied, kept
print(sum(isinstance(o, Thing) for o in gc.get_objects()))
f = (lambda t: lambda: t.name)(Thing("in a closure"))
print(f(), f.__closure__[0].cell_contents.name, sys.getrefcount(f))
del f
x = Thing("walrus")
print((y := x) is x, sys.getrefcount(x))
x = y = Thing("chained")
x, y = y, Thing("swapped")
print(sys.getrefcount(x), sys.getrefcount(y))
x = x + y
print("after x + y")
x += y
print("after x += y")
frame = inspect.currentframe()
print(sys.getrefcount(frame) >= 1, frame.f_lineno)
del frame


def arguments(*args, **kwargs):
    return sys.getrefcount(args[0]), sorted(kwargs)


print(arguments(x, k=y), sys.getrefcount(x))
container = {"k": Thing("in a dict")}
container["k"] = container["k"] + 1
print("replaced")
container.clear()
print("cleared", sys.getrefcount(None) > 100)
assert x(y), "never"
print("asserted")
finalizer = weakref.finalize(x, print, "finalised")
print("end")
for name in "a", "x", "y", "value", "reference", "finalizer":
    print("deleting", name)
    del globals()[name]
