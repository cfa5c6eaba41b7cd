"""Each defect is found under its name, in a problem that is right but for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from whygrad.check.defect import Defect, Name
from whygrad.check.problems import check_problems
from whygrad.check.runner import Runner
from whygrad.practice.parse import parse

PROBLEMS = Path(__file__).parents[2] / "problems"

FRONT = "---\nid: one\ntitle: One\nkind: {kind}\nlevel: intermediate\ntopics: [grad]\n{more}---\n\nWhat happens?\n\n"
PREDICT = (
    FRONT.format(kind="predict", more="")
    + """\
```python
import torch

w = torch.tensor(3.0, requires_grad=True)
(w * w).backward()
print(w.grad)
```

- [ ] `tensor(3.)`
- [x] `tensor(6.)`
- [ ] `tensor(9.)`

## Hints

1. The product rule.

## Explanation

The buffer gets 2 * w: `w.grad == 6`, so w.grad is 6.0.
"""
)
SETTING = (
    FRONT.format(kind="setting", more="check: w.grad is None\n")
    + """\
```python
import torch

w = torch.tensor(3.0, requires_grad=True)
(w * w).backward()
____
```

- [x] `w.grad = None`
- [ ] `w.grad.zero_()`
"""
)
DEBUG = (
    FRONT.format(kind="debug", more='symptom: error is not None and "does not require grad" in str(error)\n')
    + """\
```python
import torch

w = torch.tensor(3.0)
(w * w).backward()
```

- [x] w does not require grad
  <!-- check: not w.requires_grad -->
  <!-- fix:
  - w = torch.tensor(3.0)
  + w = torch.tensor(3.0, requires_grad=True)
  -->
- [ ] the product is no scalar
  <!-- check: (w * w).dim() > 0 -->
"""
)
CODE = (
    FRONT.format(kind="code", more="")
    + """\
```python
def derivative(x):
    return None
```

## Solution

```python
import torch


def derivative(x):
    leaf = torch.tensor(x, requires_grad=True)
    (leaf**3).backward()
    return leaf.grad.item()
```

## Checks

```python
assert derivative(2.0) == 12.0
assert derivative(1.0) == 3.0
```
"""
)


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner() as found:
        yield found


@pytest.fixture(scope="module")
def defects(runner: Runner) -> Callable[[str], list[Defect]]:
    return lambda text: list(check_problems([parse(text)], runner, ["embedded"]).defects)


@pytest.mark.parametrize("text", [PREDICT, SETTING, DEBUG, CODE], ids=["predict", "setting", "debug", "code"])
def test_a_right_problem_has_none(text: str, defects: Callable[[str], list[Defect]]) -> None:
    assert defects(text) == []


def moved(text: str, wrong: str) -> str:
    """The text with another option as its key."""
    return text.replace("- [x]", "- [ ]").replace(f"- [ ] {wrong}", f"- [x] {wrong}")


SOLVED = CODE.replace("    return None", "    return 3 * x**2")

BROKEN = {
    "the key moved": (moved(PREDICT, "`tensor(9.)`"), Name.WRONG_KEY),
    "the key moved to another shape": (
        moved(PREDICT, "`tensor(3.)`").replace("[x] `tensor(3.)`", "[x] `tensor([6.])`"),
        Name.WRONG_KEY,
    ),
    "a setting's key moved": (moved(SETTING, "`w.grad.zero_()`"), Name.WRONG_KEY),
    "a cause that is not one": (moved(DEBUG, "the product"), Name.WRONG_KEY),
    "a number changed": (PREDICT.replace("tensor(3.0,", "tensor(5.0,"), Name.NO_RIGHT_OPTION),
    "the same answer twice": (PREDICT.replace("`tensor(9.)`", "`tensor(6.000)`"), Name.TWO_RIGHT_OPTIONS),
    "a second setting that does it": (
        SETTING.replace("`w.grad.zero_()`", "`del w.grad`").replace("del w.grad", "w.grad = eval('None')"),
        Name.TWO_RIGHT_OPTIONS,
    ),
    "no seed": (
        PREDICT.replace("(w * w)", "(w * torch.rand(()) * w)"),
        Name.UNSTABLE,
    ),
    "an order of hashes": (
        PREDICT.replace("print(w.grad)", "print(list({'aa', 'bb', 'cc', 'dd', 'ee', 'ff'})[0])"),
        Name.UNSTABLE,
    ),
    "a name misspelt": (PREDICT.replace("print(w.grad)", "print(w.grade)"), Name.DOES_NOT_RUN),
    "a syntax error": (PREDICT.replace("print(w.grad)", "print(w.grad"), Name.DOES_NOT_RUN),
    "an endless loop": (
        SETTING.replace("(w * w).backward()", "(w * w).backward()\nimport os\nos._exit(0)"),
        Name.DOES_NOT_RUN,
    ),
    "a missing import": (PREDICT.replace("import torch\n", ""), Name.NOT_SELF_CONTAINED),
    "a missing module": (PREDICT.replace("import torch\n", "import torch, not_there\n"), Name.NOT_SELF_CONTAINED),
    "something to do": (PREDICT.replace("The product rule.", "TODO"), Name.PLACEHOLDER),
    "a wrong comparison": (PREDICT.replace("`w.grad == 6`", "`w.grad == 7`"), Name.EXPLANATION_CONTRADICTS_RUN),
    "a wrong sentence": (PREDICT.replace("so w.grad is 6.0", "so w.grad is 12.0"), Name.EXPLANATION_CONTRADICTS_RUN),
    "no error to explain": (
        DEBUG.replace("w = torch.tensor(3.0)\n", "w = torch.tensor(3.0)\nw.requires_grad_()\n", 1),
        Name.QUESTION_PRESUPPOSES_ERROR,
    ),
    "a check left out": (CODE.replace("assert derivative(1.0) == 3.0\n", "").replace("== 12.0", "> 0"), Name.WEAK_TEST),
    "given what is asked for": (SOLVED, Name.ALREADY_SOLVED),
    "a wrong solution": (CODE.replace("leaf**3", "leaf**2"), Name.WRONG_KEY),
    "an empty solution": (re.sub(r"    leaf = (?s:.*?)item\(\)", "    pass", CODE), Name.PLACEHOLDER),
    "a hint that says it": (PREDICT.replace("The product rule.", "It is tensor(6.)"), Name.HINT_GIVES_KEY_AWAY),
}


@pytest.mark.parametrize("how", BROKEN)
def test_what_is_broken_is_found_under_its_name(how: str, defects: Callable[[str], list[Defect]]) -> None:
    text, name = BROKEN[how]
    assert name in {defect.name for defect in defects(text)}


@pytest.mark.parametrize(
    ("file", "published"),
    [
        ("twice-on-one-graph.md", "It prints `12.0`"),
        ("backward-without-grad.md", "It prints `None`"),
    ],
)
def test_the_false_answers_that_were_published_are_wrong_keys(file: str, published: str, runner: Runner) -> None:
    text = moved((PROBLEMS / "seeds" / file).read_text(encoding="utf-8"), published)
    found = check_problems([parse(text)], runner, ["pytorch"]).defects
    (wrong,) = [defect for defect in found if defect.name is Name.WRONG_KEY]
    assert "RuntimeError" in wrong.observed
    assert "backward" in wrong.evidence or "history" in wrong.evidence
