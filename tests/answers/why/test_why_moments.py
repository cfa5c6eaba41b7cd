"""What a line leaves behind: every answer is compared with what a tracer saw just after the line ran last."""

from __future__ import annotations

import ast
import contextlib
import io
import sys
import textwrap
from types import FrameType
from typing import Any

import pytest
import torch
from asking import IMPORTS, PATH, ask, asked, recorded, text

from whygrad.answers.why import why
from whygrad.answers.why.words import value_text
from whygrad.errors import BadInput
from whygrad.ledger.values import whole

LOOPS_AND_WRITES = """
w = torch.tensor(2.0, requires_grad=True)
total = torch.zeros(2)
for i in range(3):
    x = w * (i + 1)
    loss = x * x
    loss.backward()
    total += i + 1
    with torch.no_grad():
        w -= 0.1 * w.grad
    w.grad = None
    n = i
    if i == 1:
        n = 2
        q = w * 7
total.add_(10)
def f(a):
    b = a * 2
    b.mul_(3)
    return b
y = f(w)
y2 = f(y)
"""

SILENT_LINES_AND_CALLS = """
w = torch.tensor(2.0, requires_grad=True)
acc = torch.zeros(2)
def step(n):
    y = w * n
    acc.add_(1)
    y.backward()
    return None
def clear():
    w.grad = None
    acc.zero_()
def both(n):
    step(n)
    step(n + 1)
n = 1
step(n)
n = 2
step(n)
clear()
n = 3
both(2)
n = 4
for i in range(3):
    step(i)
    n += 1
    step(2 * i)
    clear()
    z = w + n
    if i == 0:
        continue
    n += 1
r = w * 1
try:
    both(1)
    raise ValueError
    n = 9
except ValueError:
    n = 8
acc.add_(5)
n = 6
"""

MODULES = """
class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.ih = nn.Linear(2, 2)
        self.hh = nn.Linear(2, 2)
    def forward(self, x, h):
        n = 0
        a = self.ih(x)
        h = torch.tanh(a + self.hh(h)) + 1
        h.mul_(2)
        n = 1
        return h
cell = Cell()
opt = torch.optim.SGD(cell.parameters(), lr=0.1)
xs = torch.arange(6.0).reshape(3, 2)
def epoch():
    h = torch.zeros(2)
    for x in xs:
        h = cell(x, h)
        k = 1
    loss = h.sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    done = 1
    return loss.item()
for e in range(3):
    last = epoch()
    e += 1
"""

HOOKS_AND_FUNCTIONS = """
w = torch.tensor([1.0, 2.0], requires_grad=True)
seen = torch.zeros(2)
def hook(grad):
    seen.add_(grad)
    s = seen * 1
    grad = grad * 3
    return grad
w.register_hook(hook)
for i in range(2):
    loss = (w * w).sum()
    loss.backward()
    n = i
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        r = x * x
        return r
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        t = 2 * x * g
        return t
w.grad = None
v = torch.tensor(3.0, requires_grad=True)
u = Square.apply(v)
u.backward()
u = Square.apply(v)
(u * 5).backward()
"""

COMPOUND = (ast.For, ast.If, ast.Try, ast.With, ast.FunctionDef, ast.ClassDef)

PROGRAMS = (LOOPS_AND_WRITES, SILENT_LINES_AND_CALLS, MODULES, HOOKS_AND_FUNCTIONS)


def shown(value: torch.Tensor | None) -> str:
    if value is None:
        return "None"
    known = value.detach()
    return value_text(whole(tuple(known.shape), str(known.dtype).removeprefix("torch."), known.reshape(-1).tolist()))


class Tracer:
    """Notes, after every line, what each name in sight holds."""

    def __init__(self) -> None:
        self.seen: dict[int, dict[str, str]] = {}
        self._at: dict[FrameType, int] = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != PATH:
            return None
        if event == "exception":
            self._at.pop(frame, None)
        elif event in ("line", "return"):
            self._note(frame)
            self._at[frame] = frame.f_lineno
        return self

    def _note(self, frame: FrameType) -> None:
        if frame not in self._at:
            return
        values: dict[str, str] = {}
        for name, value in {**frame.f_globals, **frame.f_locals}.items():
            if isinstance(value, torch.Tensor):
                values[name] = shown(value)
                if value.is_leaf and value.requires_grad:
                    values[f"{name}.grad"] = shown(value.grad)
        self.seen[self._at[frame]] = values


def traced(source: str) -> dict[int, dict[str, str]]:
    """By line: the values just after it ran last."""
    tree = ast.parse(source)
    tree.body[:0] = ast.parse(IMPORTS).body
    tree.body[0].lineno = 0
    tracer = Tracer()
    torch.manual_seed(0)
    before = sys.gettrace()
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            code = compile(tree, PATH, "exec")
            sys.settrace(tracer)
            exec(code, {"__name__": "__main__"})
    finally:
        sys.settrace(before)
    return tracer.seen


@pytest.mark.parametrize("program", PROGRAMS, ids=["loops", "calls", "modules", "hooks"])
def test_a_line_is_answered_with_the_state_just_after_its_last_run(program: str) -> None:
    source = textwrap.dedent(program).strip() + "\n"
    compound = {node.lineno for node in ast.walk(ast.parse(source)) if isinstance(node, COMPOUND)}
    ledger = recorded(source)
    wrong, right = [], 0
    for line, values in traced(source).items():
        if line in compound or not line:
            continue
        for name, value in values.items():
            try:
                answer = why(ledger, name, ("", line))
            except BadInput:  # a line that nothing tells of: that is said, and no wrong value is
                continue
            if answer.value == value:
                right += 1
            else:
                wrong.append(f"{name} at line {line} is {value}: {answer.headline.text}")
    assert wrong == []
    assert right > 50


def test_a_line_that_ran_several_times_says_so() -> None:
    answer = asked(LOOPS_AND_WRITES, "w.grad", 6)
    assert answer.headline.text.startswith("w.grad is 5.76 at line 6 (the last of 3 runs): backward #3 (line 6)")


def test_a_line_without_events_says_that_it_ran_before() -> None:
    answer = asked(LOOPS_AND_WRITES, "w.grad", 11)
    assert answer.headline.text.startswith("w.grad is None at line 11 (its last run): `w.grad = None` (line 10)")


def test_a_function_that_told_nothing_is_not_dated() -> None:
    source = "def f():\n    n = 1\n    return n\nf()\nx = torch.ones(1)"
    with pytest.raises(BadInput, match="line 2 never ran, or did nothing that is recorded"):
        ask(recorded(source), "x", 2)


def test_an_argument_has_its_name_from_the_beginning_of_the_call() -> None:
    source = """
    def f(x):
        n = 1
        y = x * 2
        return y
    f(torch.ones(1))
    f(torch.zeros(1))
    """
    ledger = recorded(source)
    assert ask(ledger, "x", 2).value == "[0]"
    with pytest.raises(BadInput, match="y: no tensor has this name at line 2"):
        ask(ledger, "y", 2)


# --- what made a value -----------------------------------------------------------------------------------


def test_a_value_that_was_written_later_is_not_said_to_be_made() -> None:
    answer = asked(LOOPS_AND_WRITES, "x", 4)
    assert "w is 0.32: `w -= 0.1 * w.grad` (line 9) wrote it in place last." in text(answer)
    assert "made it" not in text(answer)


def test_a_parameter_that_a_step_wrote() -> None:
    source = """
    w = torch.tensor([1.0], requires_grad=True)
    opt = torch.optim.SGD([w], lr=1.0)
    (w * 2).backward()
    opt.step()
    y = w * 3
    """
    assert "w is [-1]: `opt.step()` (line 4) wrote it in place last." in text(asked(source, "y"))


def test_an_in_place_operation_is_told_with_what_it_was_given() -> None:
    answer = asked("t = torch.ones(1)\nt.add_(10)", "t")
    assert answer.headline.text == "t is [11] at the end: `t.add_(10)` (line 2) wrote it in place last, with t = [1]."
