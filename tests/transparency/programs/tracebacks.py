# Tracebacks that the program prints itself.
import asyncio
import io
import linecache
import logging
import os
import sys
import traceback

from helpers import failing

logging.basicConfig(format="%(levelname)s %(name)s %(funcName)s:%(lineno)d %(filename)s %(message)s", stream=sys.stdout, level=logging.DEBUG)
log = logging.getLogger("program")


class Box:
    def __init__(self, value):
        self.value = value

    def __truediv__(self, other):
        return self.value / other

    def __getattr__(self, name):
        raise AttributeError(f"no {name} in a Box")

    @property
    def broken(self):
        return self.value[0]


def divide(a, b):
    return Box(a) / b


def show(title, function, *arguments):
    print("==", title)
    try:
        function(*arguments)
    except BaseException:
        traceback.print_exc(file=sys.stdout)


def multiline(a, b):
    return sum(
        [
            divide(a, 1), divide(a, b), divide(
                b,
                a,
            ),
        ]
    ) + len(
        "never"
    )


def chain(a):
    return Box(Box(a)).value.value.absent.deeper


def subscript(mapping):
    return mapping["a"]["b"]["c"] + mapping["x"]["y"][
        "z"
    ]


def comprehension(values):
    return [divide(value, other) for value in values for other in values if value or other]


def nested_generator(values):
    return sum(divide(1, v) for v in values)


def lambdas(v):
    return (lambda a: (lambda b: a / b)(0))(v)


def augmented():
    total = 1
    total += divide(1, 0)
    return total


def attribute_assignment():
    box = Box(1)
    box.value = box.broken


def item_assignment():
    items = [1, 2]
    items[divide(4, 1)] = 3


def unpack():
    a, b = divide(3, 1), 4
    a, b, c = [a, b]


def unpack_call(*args, **kwargs):
    return unpack_call_inner(*args, **kwargs, extra=1)


def unpack_call_inner(a):
    return a


def star():
    return print(*divide(1, 1))


def with_block():
    with open("/nonexistent/file") as file, open(file):
        pass


def with_exit():
    class Manager:
        def __enter__(self):
            return self

        def __exit__(self, *args):
            print("exit saw", args[0].__name__, traceback.extract_tb(args[2])[-1].lineno)
            raise KeyError("in exit")

    with Manager() as m:
        m.nothing


def conditional(a):
    return divide(a, 0) if a else divide(
        a, 1
    )


def boolean(a):
    return a and not a or (
        divide(a, 1) and divide(a, 0)
    )


def comparison(a):
    return 1 < divide(a, 1) < divide(a, 0) < (
        a.nothing
    )


def fstring(a):
    return f"{a!r:>{divide(10, 1) + 0}} {divide(a, 0)} {a}"


def fstring_int(a):
    return f"{a} {divide(a, 2):>{4}} " f"{1 + len('x')!r} {divide(a, 0):.2f}"


def decorated():
    @failing.decorator(divide(1, 0))
    def inner():
        pass


def default_argument():
    def inner(a=1, b=divide(1, 0)):
        pass


def class_body():
    class Inner(Box):
        first = divide(1, 1)
        second = first + divide(
            first, 0)


def metaclass():
    class Meta(type):
        def __new__(mcls, name, bases, space):
            raise TypeError(f"no class {name}")

    class Inner(metaclass=Meta):
        pass


def deleted():
    value = 1
    del value
    return value


def walrus(a):
    if (n := divide(a, 1)) and (m := divide(n,
                                            0)):
        return m


def raising_expression():
    raise ValueError(
        "text",
        divide(6, 2),
    )


def reraised():
    try:
        divide(1, 0)
    except ZeroDivisionError as error:
        again = error
    raise again


def reraised_bare():
    try:
        divide(1, 0)
    except ZeroDivisionError:
        print("handling", sys.exc_info()[2].tb_lineno)
        raise


def chained():
    try:
        try:
            divide(1, 0)
        except ZeroDivisionError as error:
            raise ValueError("one") from error
    except ValueError:
        raise LookupError("two")


def finally_block():
    try:
        divide(1, 0)
    finally:
        print("finally", sys.exc_info()[0])
        {}["in finally"]


def generator():
    def gen():
        received = yield 1
        print("received", received)
        yield from inner()

    def inner():
        try:
            yield 2
        except ValueError:
            yield divide(3, 0)

    running = gen()
    next(running)
    running.send("x")
    running.throw(ValueError("thrown"))


def stop_iteration():
    def gen():
        yield 1
        next(iter(()))

    list(gen())


async def coroutine():
    async def inner(n):
        await asyncio.sleep(0)
        return divide(n, 0)

    return await asyncio.gather(inner(1), inner(2))


def asynchronous():
    asyncio.run(coroutine())


def evaluated():
    eval("divide(1, 0) + 1")


def executed():
    exec("x = 1\ny = divide(x,\n   0)")


def compiled():
    text = "def made():\n    return divide(\n        1, 0)\n"
    linecache.cache["<made>"] = (len(text), None, text.splitlines(True), "<made>")
    space = {"divide": divide}
    exec(compile(text, "<made>", "exec"), space)
    space["made"]()


def recursion(n=0):
    return recursion(n + 1) + 1


def match_statement(command):
    match command:
        case [("go" | "run") as verb, int(n)] if divide(n, 1) > 0:
            return verb + n
        case {"key": value, **rest}:
            return divide(value, len(rest))
        case _:
            return divide(
                command, 0)


def assertion(a):
    assert divide(a, 1) == 3 or not divide(a, 1), (
        divide(a, 2)
    )


def assertion_error(a):
    assert (
        divide(a, 1) == 1
        and divide(a, 0)
    )


def long_line(a):
    aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb = 1, 2; return aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa + divide(a, 0) + bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb


def unary(a):
    return -Box(a) + ~divide(a, 0)


def wide():
    Größe = "ö" * 3; 値 = {"日本": Größe}; return 値["日本"] + 値["日本語"] + divide(1, 0)


def tabs():
	values = [1,	2];	return divide(values[0],	0) + values[5]


for title, function, *arguments in [
    ("multiline", multiline, 1, 0), ("chain", chain, 1), ("subscript", subscript, {"a": {"b": {"c": 1}}, "x": {"y": {}}}),
    ("subscript missing", subscript, {"a": {}}), ("comprehension", comprehension, [1, 0]), ("generator sum", nested_generator, [1, 0]),
    ("lambdas", lambdas, 1), ("augmented", augmented), ("attribute assignment", attribute_assignment),
    ("item assignment", item_assignment), ("unpack", unpack), ("unpack call", unpack_call, 1), ("star", star),
    ("with", with_block), ("with exit", with_exit), ("conditional", conditional, 1), ("boolean", boolean, 1),
    ("comparison", comparison, 2), ("fstring", fstring, 1), ("fstring int", fstring_int, 1), ("decorated", decorated),
    ("default", default_argument), ("class body", class_body), ("metaclass", metaclass), ("deleted", deleted),
    ("walrus", walrus, 1), ("raising", raising_expression), ("reraised", reraised), ("reraised bare", reraised_bare),
    ("chained", chained), ("finally", finally_block), ("generator", generator), ("stop iteration", stop_iteration),
    ("async", asynchronous), ("eval", evaluated), ("exec", executed), ("compiled", compiled), ("recursion", recursion),
    ("match", match_statement, ["go", 3]), ("match key", match_statement, {"key": 1}), ("match other", match_statement, 5),
    ("assertion", assertion, 1), ("assertion error", assertion_error, 1), ("long", long_line, 1), ("unary", unary, 1),
    ("wide", wide), ("tabs", tabs), ("helper", failing.deep, 3), ("helper callback", failing.call, lambda: divide(1, 0)),
    ("helper class", failing.Failing, 3), ("helper import", failing.importing),
]:  # fmt: skip
    show(title, function, *arguments)

print("== logging")
try:
    divide(1, 0)
except ZeroDivisionError:
    log.exception("went wrong")
    log.error("again", exc_info=True)
log.warning("stack", stack_info=True)
log.info("level", stacklevel=1)
failing.log_with_level(log, 2)

print("== print_stack")


def stack():
    traceback.print_stack(file=sys.stdout)
    print([(entry.name, entry.lineno) for entry in traceback.extract_stack()])
    print(len(traceback.format_stack()), [f.f_code.co_name for f, _ in traceback.walk_stack(None)])


stack()
[stack() for _ in range(1)]
sorted([2, 1], key=lambda n: n if n > 1 else stack() or 0)


class Body:
    stack()


print("== details")
try:
    multiline(1, 0)
except ZeroDivisionError as error:
    tb = error.__traceback__
    while tb:
        code = tb.tb_frame.f_code
        print(tb.tb_lineno, code.co_name, code.co_firstlineno, sorted(name for name in tb.tb_frame.f_locals)[:3] if code.co_name != "<module>" else "")
        tb = tb.tb_next
    summary = traceback.TracebackException.from_exception(error, capture_locals=False)
    for frame in summary.stack:
        print(frame.name, frame.lineno, getattr(frame, "end_lineno", None), getattr(frame, "colno", None), getattr(frame, "end_colno", None), frame.line)
    buffer = io.StringIO()
    traceback.print_exception(type(error), error, error.__traceback__, limit=-1, file=buffer)
    print(buffer.getvalue())
    print(os.path.basename(traceback.extract_tb(error.__traceback__)[0].filename))
try:
    chain(1)
except AttributeError as error:
    print(error.args, error.name if hasattr(error, "name") else None, type(getattr(error, "obj", None)).__name__)
    print([line for frame in traceback.TracebackException.from_exception(error, capture_locals=True).stack[1:] for line in sorted(frame.locals)])
