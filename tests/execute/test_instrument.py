"""Code with taps does what it did without, and tells which expression gave what from which operands."""

from __future__ import annotations

import sys
import textwrap
import traceback
import warnings
from types import CodeType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whygrad.execute.instrument import Compiled, instrument
from whygrad.execute.sites import Child, Constant, OperandForm, Passed, Place, Several, SiteTable, Unknown

PATH = "program.py"


class Told:
    """Taps that write down what they are told, as (tap, text of the site, value or values)."""

    def __init__(self) -> None:
        self.table = SiteTable()
        self.all: list[tuple[str, str, Any]] = []

    def note(self, tap: str, site: int, told: Any) -> None:
        self.all.append((tap, self.table.places[site].code, told))

    def value(self, site: int, value: Any, *names: Any) -> Any:
        self.note("value", site, value)
        self.names_of = names
        return value

    def bound(self, site: int, value: Any, *names: Any) -> Any:  # noqa: ARG002
        self.note("bound", site, value)
        return value

    def look(self, site: int, value: Any) -> Any:
        self.note("look", site, value)
        return value

    def names(self, site: int, *values: Any) -> None:
        self.note("names", site, dict(zip(self.table.places[site].targets, values, strict=True)))

    def base(self, site: int, value: Any) -> Any:
        self.note("base", site, value)
        return value

    def wrote(self, site: int, value: Any = None) -> Any:
        self.note("wrote", site, value)
        return value

    def updated(self, site: int, value: Any, *names: Any) -> None:  # noqa: ARG002
        self.note("updated", site, value)

    def side(self, site: int, index: int, value: Any) -> Any:
        self.note("side", site, (self.table.places[site].sides[index], value))
        return value

    def check(self, site: int, held: bool) -> bool:
        self.note("check", site, held)
        return held

    def caught(self, site: int) -> None:
        self.note("caught", site, sys.exc_info()[0])

    def of(self, tap: str) -> list[tuple[str, Any]]:
        return [(code, told) for name, code, told in self.all if name == tap]


def prepared(source: str) -> tuple[Told, Compiled]:
    told = Told()
    return told, instrument(textwrap.dedent(source).strip("\n") + "\n", PATH, told.table, told)


def run(source: str, **names: Any) -> tuple[Told, dict[str, Any]]:
    told, compiled = prepared(source)
    space: dict[str, Any] = {"__name__": "__main__", **names}
    exec(compiled.instrumented, space)
    return told, space


def place(source: str, code: str) -> Place:
    """The site of the expression `code` (the last one with that text)."""
    told, _ = prepared(source)
    return [place for place in told.table.places if place.code == code][-1]


def forms(source: str, code: str) -> list[Any]:
    return [operand.form for operand in place(source, code).operands]


class Thing:
    """Something with attributes and items."""

    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)
        self.items: dict[Any, Any] = {}

    def __getitem__(self, key: Any) -> Any:
        return self.items[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.items[key] = value


# --- expressions ----------------------------------------------------------------------------------


def test_every_operation_of_an_expression_is_told_from_the_inside_out() -> None:
    told, _ = run("y = (a + b) * a", a=2, b=3)
    assert told.of("value") == [("a + b", 5)]
    assert told.of("bound") == [("(a + b) * a", 10)]


def test_values_pass_through_as_the_same_objects() -> None:
    thing = Thing()
    _, space = run("y = make()", make=lambda: thing)
    assert space["y"] is thing


def test_site_has_the_span_of_its_expression() -> None:
    found = place("x = 1\ny = 1 + (x *\n     2)", "x * 2")
    assert (found.line, found.column, found.end_line, found.end_column) == (2, 9, 3, 6)


def test_columns_count_characters() -> None:
    found = place("é = 1\nname = 'äöü'; y = é * 2", "é * 2")
    assert (found.column, found.end_column) == (18, 23)


def test_site_knows_its_function() -> None:
    source = """
        class Net:
            def forward(self, x):
                return x * 2
    """
    assert place(source, "x * 2").function == "Net.forward"
    assert place("f = lambda x: x * 2", "x * 2").function == "<lambda>"


@pytest.mark.parametrize(
    ("expression", "operation"),
    [
        ("a + b", "add"), ("a - b", "sub"), ("a * b", "mul"), ("a / b", "div"), ("a // b", "floordiv"),
        ("a % b", "mod"), ("a ** b", "pow"), ("a @ b", "matmul"), ("-a", "neg"), ("a > b", "gt"), ("a == b", "eq"),
        ("a[0]", "getitem"), ("a.T", "T"), ("a.sum()", "sum"), ("f(a)", "call"), ("float(a)", "float"),
        ("a.grad", "grad"), ("a.f(b).g()", "g"),
    ],
)  # fmt: skip
def test_operations_have_plain_names(expression: str, operation: str) -> None:
    assert place(f"y = {expression}", expression).operation == operation


@pytest.mark.parametrize(
    ("imported", "expression", "operation"),
    [
        ("import torch", "torch.exp(x)", "torch.exp"),
        ("import torch.nn.functional as F", "F.relu(x)", "torch.nn.functional.relu"),
        ("from torch.nn import functional as F", "F.relu(x)", "torch.nn.functional.relu"),
        ("from torch import exp", "exp(x)", "torch.exp"),
        ("import torch.nn", "torch.nn.Linear(1, 1)", "torch.nn.Linear"),
        ("from . import helpers", "helpers.loss(x)", "..helpers.loss"),
    ],
)
def test_imported_functions_have_their_full_names(imported: str, expression: str, operation: str) -> None:
    assert place(f"{imported}\ny = {expression}", expression).operation == operation


def test_operands_are_known_by_their_form() -> None:
    assert forms("y = a * 2.0", "a * 2.0") == [Passed(0), Constant(2.0)]
    assert forms("y = a * -2", "a * -2") == [Passed(0), Constant(-2)]
    assert forms("y = a.sum(0)", "a.sum(0)") == [Passed(0), Constant(0)]
    inner, outer = forms("y = (a + b) * b", "(a + b) * b")
    assert isinstance(inner, Child)
    assert outer == Passed(0)


def test_operands_in_lists_and_slices_keep_their_shape() -> None:
    [several] = forms("import torch\ny = torch.stack([a, b])", "torch.stack([a, b])")
    assert several == Several("list", (OperandForm(Passed(0), code="a"), OperandForm(Passed(1), code="b")))
    _, index = forms("y = a[1:n]", "a[1:n]")
    assert (index.kind, [item.form for item in index.items]) == ("slice", [Constant(1), Passed(1), Constant(None)])


def test_keywords_are_kept() -> None:
    first, second = place("y = f(a, dim=1)", "f(a, dim=1)").operands
    assert (first.keyword, second.keyword, second.form) == ("", "dim", Constant(1))


def test_operands_that_cannot_be_followed_are_unknown() -> None:
    assert forms("y = f(*a, lambda: 1)", "f(*a, lambda: 1)") == [Unknown(), Unknown()]


def test_names_are_passed_as_they_are_when_the_expression_is_over() -> None:
    told, _ = run("f(a, 1, b)", f=lambda *_: None, a=5, b=6)
    assert told.names_of == (5, 6)


def test_name_that_is_deleted_somewhere_is_not_read_again() -> None:
    told, _ = run("""
        def use():
            x = 1
            y = f(x)
            del x
            return y
        use()
    """, f=lambda x: x)  # fmt: skip
    assert forms("x = 1\ny = f(x)\ndel x", "f(x)") == [Unknown()]
    assert ("f(x)", 1) in told.of("bound")


@pytest.mark.parametrize(
    "expression", ["len(a)", "print(a, end='')", "isinstance(a, list)", "f'{a}'", "'x' + str(a)", "1 + 2"]
)
def test_expressions_that_give_no_tensor_get_no_tap(expression: str) -> None:
    told, _ = run(f"y = {expression}", a=[1])
    assert told.of("value") == []


def test_parameters_of_functions_are_noted() -> None:
    told, _ = prepared("""
        def f(a, /, b, *rest, c=1, **more):
            pass
        class Net:
            def forward(self, x):
                pass
    """)
    assert told.table.parameters[PATH, "f"] == {"a", "b", "rest", "c", "more"}
    assert told.table.parameters[PATH, "Net.forward"] == {"x"}


# --- statements -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "targets"),
    [
        ("w = f()", ("w",)),
        ("v = w = f()", ("v", "w")),
        ("thing.h = f()", ("thing.h",)),
        ('thing["x"] = f()', ('thing["x"]',)),
        ("w: int = f()", ("w",)),
        ("(w := f())", ("w",)),
    ],
)
def test_names_that_a_statement_gives_a_value(statement: str, targets: tuple[str, ...]) -> None:
    assert place(statement, "f()").targets == targets


def test_value_that_another_name_holds_is_looked_at() -> None:
    told, _ = run("v = w", w=3)
    assert told.of("look") == [("w", 3)]


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("a, (b, c) = 1, (2, 3)", {"a": 1, "b": 2, "c": 3}),
        ("first, *rest = [1, 2, 3]", {"first": 1, "rest": [2, 3]}),
        ("[a, b] = 1, 2", {"a": 1, "b": 2}),
        ("for a in [7]: pass", {"a": 7}),
        ("for i, (a, b) in enumerate([(1, 2)]): pass", {"i": 0, "a": 1, "b": 2}),
        ("with manager() as a: pass", {"a": 9}),
    ],
)
def test_names_bound_by_unpacking_loops_and_contexts(statement: str, names: dict[str, Any]) -> None:
    import contextlib

    told, _ = run(statement, manager=lambda: contextlib.nullcontext(9))
    assert [bound for _, bound in told.of("names")] == [names]


@pytest.mark.parametrize(
    ("statement", "attribute", "item", "written"),
    [
        ("w.grad = None", "grad", False, "w.grad"),
        ("w.data = 1", "data", False, "w.data"),
        ("w.requires_grad = True", "requires_grad", False, "w.requires_grad"),
        ("w[0] = 1", "", True, "w[0]"),
        ("w.grad[0] = 1", "grad", True, "w.grad[0]"),
        ("w.data[0] = 1", "data", True, "w.data[0]"),
        ("w.grad *= 2", "grad", False, "w.grad"),
        ("w[0] += 2", "", True, "w[0]"),
        ("del w.grad", "grad", False, "del w.grad"),
        ("w.grad, x = 1, 2", "grad", False, "w.grad"),
    ],
)
def test_writes_are_announced_and_reported(statement: str, attribute: str, item: bool, written: str) -> None:
    thing = Thing(grad=Thing(), data=Thing())
    thing.items = thing.grad.items = thing.data.items = {0: 1}
    if "*=" in statement:
        thing.grad = 3
    told, _ = run(statement, w=thing)
    assert [value for _, value in told.of("base")] == [thing]
    assert len(told.of("wrote")) == 1
    [found] = [place for place in told.table.places if place.written]
    assert (found.attribute, found.item, found.written, found.code) == (attribute, item, written, statement)


def test_each_of_several_targets_is_reported() -> None:
    one, two = Thing(grad=1), Thing(grad=2)
    told, _ = run("v.grad = w.grad = None", v=one, w=two)
    assert [value for _, value in told.of("base")] == [one, two]
    assert (one.grad, two.grad) == (None, None)


def test_method_that_writes_through_a_buffer_is_a_write() -> None:
    thing = Thing(grad=Thing(zero_=lambda: None))
    told, _ = run("w.grad.zero_()", w=thing)
    assert told.of("base") == [("w.grad.zero_()", thing)]
    assert len(told.of("wrote")) == 1


def test_augmented_assignment_tells_what_the_name_holds_afterwards() -> None:
    told, space = run("x = [1]\nx += [2]")
    assert told.of("updated") == [("x += [2]", [1, 2])]
    assert space["x"] == [1, 2]


def test_handlers_are_told() -> None:
    told, _ = run("""
        try:
            raise ValueError
        except (KeyError, ValueError) as error:
            kept = error
    """)
    assert told.of("caught") == [("except (KeyError, ValueError) as error:", ValueError)]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="needs except*")
def test_handlers_of_groups_are_told() -> None:
    told, _ = run("""
        try:
            raise ExceptionGroup("several", [ValueError()])
        except* ValueError:
            pass
    """)
    assert len(told.of("caught")) == 1


def test_assertion_tells_sides_and_outcome() -> None:
    told, _ = run("assert a < b and not c", a=1, b=2, c=False)
    assert [side for _, side in told.of("side")] == [("a", 1), ("b", 2), ("c", False)]
    assert told.of("check") == [("a < b and not c", True)]


def test_assertion_that_fails_tells_before_it_raises() -> None:
    told, compiled = prepared("assert a == 2, 'text'")
    with pytest.raises(AssertionError, match="text"):
        exec(compiled.instrumented, {"a": 1})
    assert told.of("check") == [("a == 2", False)]


def test_assertion_that_short_circuits_tells_the_sides_that_ran() -> None:
    told, _ = run("assert a or b", a=1, b=2)
    assert [side for _, side in told.of("side")] == [("a", 1)]


# --- the program does not notice --------------------------------------------------------------------

TEXTS = """
# --- docstrings
'''The module.'''
def f():
    '''The function.'''
    return 1
result = (__doc__, f.__doc__, f())

# --- future imports
from __future__ import annotations
def f(x: Missing): return x
result = f.__annotations__

# --- defaults and decorators
def twice(f): return lambda *a: f(f(*a))
@twice
def inc(x, by=1): return x + by
result = inc(1)

# --- closures
def outer():
    n = 0
    def inner():
        nonlocal n
        n += 1
        return n
    return inner(), inner()
result = outer()

# --- globals
n = 0
def f():
    global n
    n += 1
f(); f()
result = n

# --- comprehensions
result = [[x * y for y in range(3) if y != x] for x in range(3)], {x: -x for x in range(3)}, {x % 2 for x in range(5)}

# --- generators
def g():
    got = yield 1
    while got:
        got = yield got * 2
it = g()
result = next(it), it.send(3), it.send(4)

# --- conditional expressions
x = 5
result = (1 if x > 3 else 2, x > 3 and x, x < 3 or -x)

# --- walrus
result = [y for x in range(5) if (y := x * x) > 3]

# --- match
def f(x):
    match x:
        case [a, *_] if a > 1: return a * 2
        case {'k': v}: return -v
        case _: return None
result = f([2, 3]), f({'k': 1}), f(0)

# --- classes
class A:
    x = 1 + 1
    @property
    def y(self): return self.x * 2
    def __add__(self, other): return 'added'
result = A().y, A() + 1, A.__qualname__

# --- super and class cell
class A:
    def f(self): return 1
class B(A):
    def f(self): return super().f() + len(__class__.__name__)
result = B().f()

# --- starred calls
def f(*a, **k): return a, k
result = f(*[1, 2], 3, **{'x': 4}, y=5)

# --- chained comparison
calls = []
def n(x):
    calls.append(x)
    return x
result = (n(1) < n(2) < n(0) < n(9), calls)

# --- f-strings
x = 3
result = f'{x * 2!r:>5}|{x=}'

# --- try else finally
log = []
def f(x):
    try:
        1 / x
    except ZeroDivisionError:
        log.append('e')
        return 'caught'
    else:
        log.append('o')
    finally:
        log.append('f')
    return 'out'
result = (f(0), f(1), log)

# --- loops with else
result = []
for x in range(3):
    if x == 1: continue
    result.append(x)
else:
    result.append('else')

# --- slices
x = list(range(10))
x[2:4] = [0]
del x[0]
result = x[::2], x[-1], x[slice(1, 2)]

# --- unpacking
(a, b), *c = (1, 2), 3, 4
d = e = [a, b]
d[0], d[1] = d[1], d[0]
result = (a, b, c, d, e)

# --- augmented
x = 1
x <<= 3
x -= 1
y = {'a': [1]}
y['a'] += [2]
result = x, y

# --- async
import asyncio
async def f(x):
    await asyncio.sleep(0)
    return x * 2
async def g():
    return [await f(x) async for x in h()]
async def h():
    for x in range(3):
        yield x
result = asyncio.run(g())

# --- locals and globals
def f(a):
    b = a + 1
    return sorted(locals())
result = f(1), sorted(name for name in globals() if not name.startswith('__'))

# --- code objects
def f(a, b=1, *c, d, **e):
    x = a + b
    return x
result = [getattr(f.__code__, 'co_' + n) for n in ('argcount', 'varnames', 'names', 'freevars', 'flags')]

# --- order of evaluation
log = []
def n(x):
    log.append(x)
    return x
d = {}
d[n('key')] = n('value')
n(lambda *a: a)(n(1), n(2))
result = log[:2]

# --- assert
def f(x):
    assert x > 0, 'positive'
    return x
try:
    f(-1)
except AssertionError as e:
    result = (str(e), f(2))
"""

PROGRAMS = dict(section.split("\n", 1) for section in TEXTS.split("\n# --- ")[1:])
"""Programs of every kind of syntax, by what they are about; each leaves a `result`."""


@pytest.mark.parametrize("source", PROGRAMS.values(), ids=PROGRAMS)
def test_program_gives_the_same(source: str) -> None:
    _, compiled = prepared(source)
    results = []
    for code in (compile(source, PATH, "exec", dont_inherit=True), compiled.instrumented, compiled.plain):
        space: dict[str, Any] = {"__name__": "__main__"}
        exec(code, space)
        results.append(repr(space["result"]))
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("source", PROGRAMS.values(), ids=PROGRAMS)
def test_plain_twin_is_the_code_that_python_compiles(source: str) -> None:
    text = textwrap.dedent(source).strip("\n") + "\n"
    assert prepared(source)[1].plain == compile(text, PATH, "exec", dont_inherit=True)


def functions_of(code: CodeType) -> list[CodeType]:
    inner = [const for const in code.co_consts if isinstance(const, CodeType)]
    return [code, *(found for const in inner for found in functions_of(const))]


@pytest.mark.parametrize("source", PROGRAMS.values(), ids=PROGRAMS)
def test_names_of_code_objects_stay(source: str) -> None:
    _, compiled = prepared(source)
    for ours, plain in zip(functions_of(compiled.instrumented), functions_of(compiled.plain), strict=True):
        assert (ours.co_name, ours.co_varnames, ours.co_freevars, ours.co_cellvars) == (
            plain.co_name, plain.co_varnames, plain.co_freevars, plain.co_cellvars,
        )  # fmt: skip
        assert set(ours.co_names) == set(plain.co_names)
        assert {line for _, _, line in ours.co_lines()} == {line for _, _, line in plain.co_lines()}


def test_instrumented_code_is_mapped_to_its_twin() -> None:
    told, compiled = prepared("def f(x):\n    return x * 2")
    for ours, plain in zip(functions_of(compiled.instrumented), functions_of(compiled.plain), strict=True):
        assert told.table.plain[ours] is plain


@pytest.mark.parametrize(
    "source",
    [
        "x = {}\ny = 1 + x['missing'] * 2",
        "def f(x):\n    return (\n        1 /\n        x\n    )\nf(0)",
        "f = lambda x: x.missing()\nf(1)",
        "a = [1]\na[0].b = 2",
        "assert (1 ==\n        2), 'no'",
        "a, b = 1",
        "for x in 5: pass",
        "def g():\n    yield 1 / 0\nlist(g())",
        "with 5 as x: pass",
        "x = 1\nx += 'a'",
        "del missing.grad",
    ],
)
def test_tracebacks_are_those_of_the_plain_code(source: str) -> None:
    _, compiled = prepared(source)

    def trace(code: CodeType) -> list[Any]:
        try:
            exec(code, {"__name__": "__main__"})
        except Exception as error:
            return [
                repr(error),
                [
                    (frame.lineno, frame.name, getattr(frame, "colno", None), getattr(frame, "end_colno", None))
                    for frame in traceback.extract_tb(error.__traceback__)[1:]
                ],
            ]
        raise AssertionError("nothing was raised")

    assert trace(compiled.instrumented) == trace(compiled.plain)


def test_syntax_errors_are_pythons() -> None:
    with pytest.raises(SyntaxError) as ours:
        prepared("x = (1")
    with pytest.raises(SyntaxError) as plain:
        compile("x = (1\n", PATH, "exec", dont_inherit=True)
    assert str(ours.value) == str(plain.value)


def test_warnings_of_the_compiler_are_given_once() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        prepared("x = 1\ny = x is 1")
    assert [warning.category for warning in seen] == [SyntaxWarning]


# --- places ---------------------------------------------------------------------------------------


def test_line_is_found_as_the_statement_that_covers_it() -> None:
    told, _ = prepared("x = 1\nif x:\n    y = (\n        x +\n        2\n    )\n")
    found = told.table.places[told.table.statement(PATH, 5)]
    assert (found.line, found.end_line, found.code) == (3, 6, "y = ( x + 2 )")


def test_header_of_a_compound_statement_is_a_statement_of_its_own() -> None:
    told, _ = prepared("for x in range(3):\n    y = x\n")
    assert told.table.places[told.table.statement(PATH, 1)].code == "for x in range(3):"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="needs positions in code objects")
def test_running_frame_is_found_as_the_very_expression() -> None:
    seen: list[str] = []
    told, compiled = prepared("def f(x):\n    return g(x) + g(x * 2)\nf(1)")

    def g(x: int) -> int:
        seen.append(told.table.places[told.table.running(sys._getframe(1))].code)
        return x

    exec(compiled.instrumented, {"g": g})
    assert seen == ["g(x)", "g(x * 2)"]


@given(
    st.recursive(
        st.sampled_from(["a", "b", "2", "3.5"]),
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(["+", "-", "*", "<", "=="]), inner).map(lambda t: f"({' '.join(t)})"),
            inner.map(lambda e: f"(-{e})"),
            inner.map(lambda e: f"abs({e})"),
            st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} if {t[1]} else {t[2]})"),
            st.tuples(inner, inner).map(lambda t: f"[{t[0]}, {t[1]}][0]"),
        ),
        max_leaves=8,
    )
)
def test_any_expression_gives_the_same_and_is_told_as_its_text_says(expression: str) -> None:
    told, space = run(f"result = {expression}", a=7, b=-4)
    assert space["result"] == eval(expression, {"a": 7, "b": -4})
    for code, value in told.of("value"):
        if "=" not in code.replace("==", ""):
            assert value == eval(code, {"a": 7, "b": -4})
