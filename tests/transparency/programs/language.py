"""The language itself: scopes, classes, generators, patterns, evaluation order."""
from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import doctest
import enum
import functools
import inspect
import operator
import typing


def title(text: str) -> None:
    print("==", text)


title("scopes")


def counter(start=0):
    count = start
    history = []

    def step(by=1):
        nonlocal count
        count += by
        history.append(count)
        return count

    def total():
        return sum(history), sorted(locals()), sorted(total.__code__.co_freevars)

    return step, total


step, total = counter(10)
print(step(), step(5), total(), step.__code__.co_freevars, counter.__code__.co_cellvars, counter.__code__.co_varnames)
value = 1


def globally():
    global value, fresh
    value += 1
    fresh = [value, *range(value)]
    return sorted(globals())[-4:], sorted(vars())


print(globally(), fresh)


def local_names(a, *args, b=2, **kwargs):
    c = a + b
    for index, item in enumerate(args):
        d = c * item
    with contextlib.nullcontext(c) as inner:
        (e, [f, *g]) = 1, [2, 3, 4]
    try:
        1 / 0
    except ZeroDivisionError as error:
        text = str(error)
    h = [x + y for x in args if (last := x) for y in args]
    return list(locals()), dir()


print(local_names(1, 2, 3, k=4))
print(local_names.__code__.co_varnames, local_names.__code__.co_names, local_names.__code__.co_argcount, local_names.__code__.co_flags)


def deleting():
    a = [1, 2]
    b = len(a) + a[0]
    del a
    globals().pop("fresh")
    return b, "a" in locals()


def take_away():
    return globals().pop("given_away")


given_away = [1]
print(deleting(), operator.add(given_away, take_away()), "given_away" in globals())
temporary = [3]


def drop(values):
    exec("del temporary", globals())
    return values


print(drop(temporary), "temporary" in globals())

title("classes")


class Meta(type):
    @classmethod
    def __prepare__(mcls, name, bases, **options):
        class Space(dict):
            def __getitem__(self, key):
                looked.append(key)
                return super().__getitem__(key)

            def __setitem__(self, key, value):
                stored.append(key)
                super().__setitem__(key, value)

        looked, stored = [], []
        mcls.looked, mcls.stored = looked, stored
        return Space()

    def __new__(mcls, name, bases, space, **options):
        cls = super().__new__(mcls, name, bases, dict(space))
        cls.options = options
        return cls

    def __call__(cls, *args, **kwargs):
        print("calling", cls.__name__, args, kwargs)
        return super().__call__(*args, **kwargs)

    def __len__(cls):
        return 42


class Base(metaclass=Meta, flag=1 + 1):
    """Documented."""

    first = len("abc")
    second = first + value
    third: int = second * 2
    __hidden = first - 1
    fourth = __hidden * 2
    squares = [n * n for n in range(first)]
    table = {k: v for k, v in zip("ab", squares)}

    def __init__(self, x):
        self.__x = x + self.first
        self.y = self.__x * 2

    def method(self):
        return self.__x, __class__.__name__

    @property
    def doubled(self):
        return self.y * 2

    @staticmethod
    def static(a, b=3):
        return a + b

    @classmethod
    def make(cls, x):
        return cls(x + 1)

    def __init_subclass__(cls, **kwargs):
        print("subclass", cls.__name__, kwargs)


print(Meta.looked, Meta.stored, Base.options, sorted(k for k in vars(Base)))


class Derived(Base, extra="yes"):
    def __init__(self, x, *more):
        super().__init__(x)
        self.more = more
        (lambda: super(Derived, self).__setattr__("late", x - 1))()

    def method(self):
        return super().method() + (self.more, super().doubled)


print(Derived.make(3).method(), vars(Derived(1, 2)), len(Derived), Derived.static(1), Base.__doc__, Derived.__mro__)


@dataclasses.dataclass(order=True, frozen=True)
class Point:
    x: int
    y: int = 2 + 3
    tags: list[str] = dataclasses.field(default_factory=lambda: ["a" * 2], compare=False)

    def __post_init__(self):
        object.__setattr__(self, "x", self.x * 1)


print(Point(1), Point(1) < Point(2), dataclasses.replace(Point(3), y=1), dataclasses.fields(Point)[1].default)
print(typing.get_type_hints(Point), Point.__annotations__)


class Colour(enum.Enum):
    RED = 1 + 0
    GREEN = RED + 1
    BLUE = enum.auto()

    @property
    def shade(self):
        return self.value * 10


class Flags(enum.IntFlag):
    A = enum.auto()
    B = A << 1
    C = A | B


print(list(Colour), Colour.GREEN.shade, Flags.C, Flags.A | Flags.B, Colour(2))


class Named(typing.NamedTuple):
    a: int
    b: str = "x" + "y"


print(Named(1), Named(1)._asdict(), Named.__annotations__)


class Slots:
    __slots__ = ("a", "b")

    def __init__(self):
        self.a = 1


slots = Slots()
slots.b = slots.a + 1
print(slots.b, hasattr(slots, "__dict__"))

title("evaluation order")
trace = []


class Loud:
    def __init__(self, name):
        self._name = name

    def __getattribute__(self, name):
        if name in ("_name",):
            return object.__getattribute__(self, name)
        trace.append(f"{object.__getattribute__(self, '_name')}.{name}")
        return object.__getattribute__(self, name)

    def __getattr__(self, name):
        trace.append(f"missing {name}")
        raise AttributeError(name)

    def __call__(self, *args, **kwargs):
        trace.append(f"{self._name}({len(args)},{len(kwargs)})")
        return Loud(self._name + "()")

    @property
    def grad(self):
        trace.append("reads grad")
        return Loud(self._name + ".grad")

    @grad.setter
    def grad(self, value):
        trace.append("writes grad")

    @property
    def data(self):
        trace.append("reads data")
        return Loud(self._name + ".data")

    @property
    def shape(self):
        trace.append("reads shape")
        return (1,)

    def zero_(self):
        trace.append("zero_")
        return self


def loud_operator(symbol):
    def apply(self, *others):
        trace.append(f"{self._name} {symbol}")
        return Loud(f"{self._name}{symbol}")

    return apply


for name in "add sub mul truediv matmul pow neg invert lt gt eq ne radd rmul iadd imul getitem and or".split():
    setattr(Loud, f"__{name}__", loud_operator(name))
Loud.__bool__ = lambda self: trace.append(f"bool {self._name}") or True
Loud.__len__ = lambda self: trace.append(f"len {self._name}") or 2
Loud.__iter__ = lambda self: trace.append(f"iter {self._name}") or iter([Loud("i1"), Loud("i2")])
Loud.__hash__ = lambda self: trace.append(f"hash {self._name}") or 7
Loud.__repr__ = lambda self: trace.append(f"repr {self._name}") or "<Loud>"
Loud.__setitem__ = lambda self, key, value: trace.append(f"set {self._name}")
Loud.__delitem__ = lambda self, key: trace.append(f"delete {self._name}")
Loud.__contains__ = lambda self, key: trace.append(f"contains {self._name}") or True
Loud.__enter__ = lambda self: trace.append(f"enter {self._name}") or self
Loud.__exit__ = lambda self, *args: trace.append(f"exit {self._name}")
Loud.__float__ = lambda self: trace.append(f"float {self._name}") or 1.0
Loud.__index__ = lambda self: trace.append(f"index {self._name}") or 1
Loud.__del__ = lambda self: trace.append(f"gone {self._name}")


def flush(text):
    print(text, trace)
    trace.clear()


a, b = Loud("a"), Loud("b")
flush("made")
c = a + b * a - 2
flush("arithmetic")
d = (a @ b)[a:b, 1, ...]
flush("subscript")
del c
flush("del c")
d = None
flush("d = None")
a.grad = b
flush("grad write")
a.grad.zero_()
flush("grad zero_")
a.data.zero_()
flush("data zero_")
a.grad
flush("grad read")
a[b] = a
flush("item write")
a[b] += a
flush("item augmented")
a += b
flush("augmented")
a = Loud("a")
flush("rebound")
e = a(b, *a, key=b, **{"other": a})
flush("call")
e = a(a(b))(a)
flush("nested calls")
f, g = a
flush("unpack")
f, *g = a
flush("star unpack")
assert a
flush("assert")
assert a == b
flush("assert ==")
assert not a < b or a != b, a
flush("assert or")
assert a in b and a is not b
flush("assert in")
if a < b < a:
    flush("chain")
while not a:
    pass
flush("while")
for h in a:
    flush("loop")
flush("loop done")
with a as h, b:
    flush("inside")
flush("outside")
print([h + a for h in a] and a or b)
flush("comprehension")
{a: b, **{}}
flush("dict")
-a, ~a, +float(a)
flush("unary")
f"{a} {a + b!r:>3}"
flush("fstring")
h = a if b else a
flush("conditional")
(i := a + b)
flush("walrus")
a and b and (a or b)
flush("boolean")
a.missing if hasattr(a, "missing") else a.shape
flush("attributes")
sorted([a, b], key=lambda item: item.shape)
flush("sorted")
isinstance(a, int), type(a), id(a) == id(b)
flush("isinstance")
del a[b]
flush("delete item")
e = f = g = h = i = None
flush("released")
Loud("temporary")
flush("temporary")
Loud("x") + Loud("y")
flush("temporaries")
Loud("x")(Loud("y")).grad
flush("temporary call")
[Loud("in list")][0]
flush("list of temporary")


def local(loud):
    inner = loud + Loud("inner")
    return inner(loud)


local(Loud("outer"))
flush("after local")
try:
    local(Loud("outer")).absent
except AttributeError:
    flush("in handler")
flush("after handler")
del a, b
flush("del a, b")

title("generators")


def generator(n):
    try:
        for i in range(n):
            received = yield i * 2
            if received:
                print("received", received)
    except GeneratorExit:
        print("closed")
        raise
    finally:
        print("finally")
    return "result"


def delegating():
    result = yield from generator(2)
    print("result", result)
    yield result


running = generator(5)
print(next(running), running.send("x"), running.gi_frame.f_lineno, running.gi_running, inspect.getgeneratorlocals(running))
running.close()
print(list(delegating()), sum(x * y for x in range(3) for y in range(x) if x + y), {x % 2 for x in range(4)})
print([(lambda q=k: q + k)() for k in range(3)], [[i * j for j in range(i)] for i in range(3)])
lazy = (print("lazily", n) or n + 1 for n in [1, 2])
print("made")
print(list(lazy))
print([last := n for n in range(3)], last)

title("async")


async def numbers():
    for n in range(3):
        await asyncio.sleep(0)
        yield n * 2


class Session:
    async def __aenter__(self):
        print("aenter")
        return self

    async def __aexit__(self, *args):
        print("aexit", args[0])
        return True


async def main():
    async with Session() as session:
        print([n async for n in numbers() if n or session], await asyncio.gather(*(asyncio.sleep(0, n + 1) for n in range(2))))
        async for n in numbers():
            print("n", n, asyncio.current_task().get_name())
        raise ValueError("swallowed")
    task = asyncio.create_task(asyncio.sleep(10))
    await asyncio.sleep(0)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        print("cancelled", task.cancelled())
    return await asyncio.wait_for(asyncio.sleep(0, "done"), 1)


print(asyncio.run(main()))

title("match")


def match(subject):
    match subject:
        case 0 | 1:
            return "small"
        case [x, y, *rest] if (n := len(rest)) > 0:
            return x + y, rest, n
        case [Point(x=0) as p, _]:
            return "origin", p.y
        case {"a": int(a), **others}:
            return a + 1, others
        case Point(x, y) if x + y > 5:
            return x * y
        case Colour.RED:
            return "red"
        case str() as text:
            return text.upper() + "!"
        case None | True:
            return "singleton"
        case _:
            return type(subject).__name__


print([match(s) for s in (1, [1, 2, 3], [Point(0), 1], {"a": 1, "b": 2}, Point(5), Colour.RED, "x", None, 2.5, Point(0))])

title("functions")


def signature(a, b=1 + 1, /, c=[1, 2][0], *args, d, e=len("abc"), **kwargs):
    """Doc of signature."""
    return a, b, c, args, d, e, kwargs


print(signature(1, d=2), signature(*range(5), d=1, **{"z": 2}), inspect.signature(signature), signature.__defaults__, signature.__kwdefaults__)
print(signature.__doc__, signature.__name__, signature.__qualname__, signature.__module__, inspect.getdoc(signature), counter()[0].__qualname__)


def decorator(factor):
    def wrap(function):
        @functools.wraps(function)
        def inner(*args, **kwargs):
            return function(*args, **kwargs) * factor

        inner.factor = factor
        return inner

    return wrap


@decorator(2)
@decorator(factor=1 + 2)
def decorated(x, y=1):
    "Doc."
    return x + y


print(decorated(1), decorated.factor, decorated.__doc__, decorated.__wrapped__.__wrapped__(1), inspect.signature(decorated))
print(functools.reduce(lambda x, y: x * y, range(1, 5)), list(map(operator.neg, [1, 2])), (lambda *a, **k: (a, k))(1, b=2))


@functools.lru_cache(maxsize=None)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


print(fib(30), fib.cache_info())

title("exec and eval")
space = {"n": 3}
exec("m = n + 1\ndef f(x):\n    return x * m\nr = f(n)", space)
print(space["r"], eval("n * m + r", space), sorted(k for k in space if not k.startswith("__")), eval("value + 1"), eval("[v for v in (1, 2) if v]"))
here = locals()
print(here is globals(), eval("here is locals()"))
code = compile("a + b", "<expression>", "eval")
print(eval(code, {}, collections.ChainMap({"a": 1}, {"b": 2})))

title("f-strings")
width, name, number = 10, "wörld", 3.14159
print(f"{name!r:>{width}} {number:{width}.{2 + 1}f} {number=:.2f} {name.upper() + '!'} {'nested ' + f'{width * 2}'} {{literal}} {width + 1 = }")
print(f"{[n * 2 for n in range(3)]} {(lambda x: x + 1)(2)} {value if value > 1 else 0:>5} {'a' 'b'}" "implicit" f" {name}")
print("%s %d" % (name, width + 1), "{0[1]} {a.real}".format([1, 2], a=3), b"bytes" + b"!", "ab" * 3)

title("statements")
for i in range(5):
    if i == 1:
        continue
    if i == 3:
        break
else:
    print("never")
else_taken = []
for i, (j, *k) in enumerate([(1, 2, 3), (4,)]):
    print(i, j, k)
else:
    else_taken.append("for")
while width > 8:
    width -= 1
else:
    else_taken.append("while")
try:
    pass
except ValueError:
    pass
else:
    else_taken.append("try")
finally:
    else_taken.append("finally")
print(else_taken)
x = y = z = [0]
x[0], y = y, x[0]
print(x, y, z)
x = [1, 2, 3, 4]
x[1:3] = [a * 2 for a in x[::-1]]
x[0] += 10
x[-1] **= 2
(x[0], x[1]), w = (7, 8), x
print(x, w is x, [*x, *"ab"], {**{"a": 1}, "b": 2}, (*x,)[1:])
annotated: list[int] = [1]
bare_annotation: undefined_name  # noqa: F821
print(__annotations__)
big = 10**50 // 3; text = ("one"
    "two")
print(big, text, 1 if text else 2, not text, 5 is not None, [] is [], 1_000, 0xFF, 1e3, 2j * 1, ...)
a = b = 3
a, b = b, a + b
a @= type("M", (), {"__rmatmul__": lambda self, other: other * 10})()
print(a, b, a <= b, a == 30 != b, a if a else b)


def unusual(_, __=1):
    _, x = 1, 2
    for _ in range(2):
        pass
    return _ + x + __


print(unusual(5))
lines = [line.strip() for line in """
multi
line
""".splitlines() if line]
print(lines)


class Descriptor:
    def __set_name__(self, owner, name):
        print("set name", owner.__name__, name)

    def __get__(self, instance, owner):
        return (instance is not None, owner.__name__)


class Owner:
    field = Descriptor()
    other = [Descriptor()][0]


print(Owner.field, Owner().field)


def documented(x):
    """
    >>> documented(2)
    3
    >>> documented("a")
    Traceback (most recent call last):
        ...
    TypeError: can only concatenate str (not "int") to str
    >>> documented(5)
    7
    """
    return x + 1


title("doctest")
print(doctest.testmod())
print(inspect.getsource(documented).count("\n"), inspect.getsource(Point), inspect.getsource(decorated), inspect.getcomments(main))
print(inspect.getsourcelines(generator)[1], inspect.getsource(lambda x: x + 1))
print(documented.__code__.co_firstlineno, sorted({line for _, _, line in documented.__code__.co_lines() if line}), counter.__code__.co_nlocals)
