"""Pages of every format: each block of Python runs, and each claim about its output is compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from whygrad.check.defect import Checked, Name
from whygrad.check.documents import Renewal, check_pages
from whygrad.check.formats import markdown
from whygrad.check.runner import Runner
from whygrad.check.update import renewed

Check = Callable[..., Checked]

BACKWARD = "import torch\n\nw = torch.tensor(3.0, requires_grad=True)\n(w * 2).backward()\n"


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner() as found:
        yield found


@pytest.fixture
def check(runner: Runner, tmp_path: Path) -> Check:
    def checked(text: str, name: str = "page.md", renewals: list[Renewal] | None = None) -> Checked:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return check_pages([str(path)], runner, "embedded", renewals)

    return checked


def fenced(code: str, info: str = "python") -> str:
    return f"```{info}\n{code}```\n\n"


def names(checked: Checked) -> list[Name]:
    return [defect.name for defect in checked.defects]


SPELLINGS = [
    "```python\n{}```",
    "```py\n{}```",
    "```python3\n{}```",
    "``` python\n{}```",
    "~~~python\n{}~~~",
    "`````python\n{}`````",
    "```{{python}}\n{}```",
    "```{{code-cell}} ipython3\n{}```",
    "```{{code-block}} python\n{}```",
    "```{{.python .numberLines}}\n{}```",
    '```python title="a.py" hl_lines="1"\n{}```',
    "```python {{linenos=true}}\n{}```",
    "```Python\n{}```",
    "- item\n\n  ```python\n  {}  ```",
    "> ```python\n> {}> ```",
    "    >>> print(6 * 7)\n    43",
    "```pycon\n>>> print(6 * 7)\n43\n```",
    "Text:\n\n    import torch\n    print(6 * 7)  # 43",
]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_of_a_python_block_is_run(spelling: str, check: Check) -> None:
    checked = check(spelling.format("print(6 * 7)  # 43\n") + "\n")
    assert (checked.found, checked.ran) == (1, 1)
    assert names(checked) == [Name.WRONG_OUTPUT]


@pytest.mark.parametrize("info", ["pyhton", "py2thon", "ipyton", "Pythn"])
def test_a_fence_that_looks_like_python_and_is_not_known_is_a_defect(info: str, check: Check) -> None:
    checked = check(fenced("x = 1\n", info))
    assert names(checked) == [Name.SKIPPED_BLOCK]
    assert (checked.found, checked.ran, len(checked.skipped)) == (1, 0, 1)


def test_a_fence_without_a_language_that_imports_torch_is_a_defect(check: Check) -> None:
    assert names(check(fenced("import torch\n", ""))) == [Name.SKIPPED_BLOCK]


@pytest.mark.parametrize("info", ["bash", "json", "text", "pytb", "console", "diff"])
def test_other_fences_are_left_alone(info: str, check: Check) -> None:
    assert check(fenced("x\n", info)).found == 0


@pytest.mark.parametrize(
    ("line", "right"),
    [
        ("print(w.grad)  # tensor(2.)", True),
        ("print(w.grad)  # tensor(3.)", False),
        ("print(w.grad)  # -> tensor(2.), once", True),
        ("print(w.grad)  # tensor([2.])", False),
        ("w.grad  # tensor(2.)", True),
        ("w.grad  # tensor(5.)", False),
        ("w.grad.item()  # 2.0", True),
        ("w.is_leaf, w.grad  # (False, None)", False),
        ("print(w.grad)  # the gradient is printed", True),
        ("print(w.grad)  # 2. then we reset it", True),
        ("print(w.grad, w.is_leaf)  # tensor(2.) True", True),
        ("print(w.grad, w.is_leaf)  # tensor(2.) False", False),
        ("print(w.grad)\n# tensor(3.)", False),
        ("w.grad.backward()  # RuntimeError: does not require grad", True),
        ("w.square()  # raises RuntimeError", False),
        ("print('# tensor(1.)')", True),
    ],
)
def test_a_comment_that_shows_a_value_is_a_claim(line: str, right: bool, check: Check) -> None:
    checked = check(fenced(f"{BACKWARD}{line}\n"))
    assert names(checked) == ([] if right else [Name.WRONG_OUTPUT])
    if not right:
        shift = 1 if "\n" in line else 0
        assert checked.defects[0].line == 6 + shift


def test_an_output_block_is_compared(check: Check) -> None:
    code = fenced(BACKWARD + "print(w.grad)\nprint('end')\n")
    assert names(check(code + fenced("tensor(2.)\nend\n", "output"))) == []
    assert names(check(code + "Output:\n\n" + fenced("tensor(2.)\nend\n", ""))) == []
    assert names(check(code + fenced("tensor(...)\nend\n", "output"))) == []
    (wrong,) = check(code + fenced("tensor(4.)\nend\n", "output")).defects
    assert (wrong.name, wrong.line) == (Name.WRONG_OUTPUT, 11)
    assert names(check(code + fenced("tensor(4.)\n", "text"))) == []


def test_blocks_of_a_page_share_their_names_unless_told_otherwise(check: Check) -> None:
    assert names(check(fenced("x = 1\n") + fenced("print(x)  # 1\n"))) == []
    assert names(check(fenced("x = 1\n") + fenced("print(x)\n", "python new"))) == [Name.NOT_SELF_CONTAINED]
    assert names(check(fenced("x = 1\n") + fenced("print(x)\n", "python alone"))) == [Name.NOT_SELF_CONTAINED]
    hidden = "<!-- whygrad: hidden\nx = 5\n-->\n\n"
    assert names(check(hidden + fenced("print(x)  # 5\n"))) == []


def test_an_expected_error_is_one(check: Check) -> None:
    assert names(check(fenced("1 / 0\n", "python raises=ZeroDivisionError"))) == []
    assert names(check(fenced("1 / 0\n", "python raises=ValueError"))) == [Name.WRONG_OUTPUT]
    assert names(check(fenced("1 / 1\n", "python raises"))) == [Name.WRONG_OUTPUT]
    assert names(check(fenced("1 / 0\n"))) == [Name.DOES_NOT_RUN]


def test_what_is_not_to_be_run_is_counted_as_skipped(check: Check) -> None:
    for text in (fenced("1 / 0\n", "python no-run"), "<!-- whygrad: no-run -->\n\n" + fenced("1 / 0\n")):
        checked = check(text)
        assert (checked.found, checked.ran, [one.why for one in checked.skipped]) == (
            1,
            0,
            ["it is marked as not to be run"],
        )


def test_an_output_that_rests_on_chance_is_unstable(check: Check) -> None:
    assert names(check(fenced("import torch\ntorch.rand(1)  # tensor([0.5])\n"))) == [Name.UNSTABLE]


def test_pages_share_nothing(runner: Runner, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(fenced("import torch\ntorch.set_grad_enabled(False)\n"))
    (tmp_path / "b.md").write_text(fenced("import torch\nprint(torch.is_grad_enabled())  # True\n"))
    assert names(check_pages([str(tmp_path / "a.md"), str(tmp_path / "b.md")], runner, "embedded")) == []


def test_a_page_that_ends_its_process_says_so(check: Check) -> None:
    (defect,) = check(fenced("import os\nos._exit(3)\n") + fenced("x = 1\n")).defects[:1]
    assert defect.name is Name.DOES_NOT_RUN
    assert "exit code 3" in defect.observed


def test_restructured_text(check: Check) -> None:
    text = f".. code-block:: python\n\n{''.join('   ' + line for line in BACKWARD.splitlines(keepends=True))}\n"
    assert names(check(text + ">>> w.grad\ntensor(2.)\n", "page.rst")) == []
    assert names(check(text + ">>> w.grad\ntensor(3.)\n", "page.rst")) == [Name.WRONG_OUTPUT]


def test_docstrings(check: Check) -> None:
    text = 'def double(x):\n    """Twice.\n\n    >>> double(2)\n    5\n    """\n    return 2 * x\n'
    checked = check(text, "module_of_mine.py")
    assert [(one.name, one.line, one.observed) for one in checked.defects] == [(Name.WRONG_OUTPUT, 4, "4")]


def test_notebooks(check: Check) -> None:
    nbformat = pytest.importorskip("nbformat.v4")
    cells = [
        nbformat.new_code_cell("x = 20", execution_count=1),
        nbformat.new_code_cell(
            "x + 1", execution_count=2, outputs=[nbformat.new_output("execute_result", data={"text/plain": "22"})]
        ),
        nbformat.new_code_cell("print(x)", execution_count=3, outputs=[nbformat.new_output("stream", text="20\n")]),
        nbformat.new_code_cell("1 / 0", outputs=[nbformat.new_output("error", ename="ZeroDivisionError")]),
    ]
    checked = check(nbformat.writes(nbformat.new_notebook(cells=cells)), "page.ipynb")
    assert (checked.found, checked.ran) == (4, 4)
    assert [(one.name, one.published, one.observed) for one in checked.defects] == [(Name.WRONG_OUTPUT, "22", "21")]


def test_an_update_writes_what_is_found(check: Check) -> None:
    text = fenced(BACKWARD + "w.grad  # tensor(9.), new\nprint(w)\n") + fenced("old\n", "output")
    renewals: list[Renewal] = []
    checked = check(text, renewals=renewals)
    assert len(checked.defects) == len(renewals) == 2
    new = renewed(text, renewals)
    assert "w.grad  # tensor(2.), new\n" in new
    assert "```output\ntensor(3., requires_grad=True)\n```" in new
    assert names(check(new)) == []


QUIZ = """\
Practice

❓ Predict Output

What is x.grad?

import torch
x = torch.tensor(2.0, requires_grad=True)
(x ** 3).backward()
print(x.grad.item())

A 6.0

B 12.0

C None

💡 Hint

Recall a rule.

The derivative is 3*x^2, so x.grad will be 12.0.

❓ Debug

Why is x.grad None?

import torch
x = torch.tensor(2.0)
(x ** 2).backward()
print(x.grad)

A x does not have requires_grad=True

B x.grad was set to None

Since x does not have requires_grad=True, x.grad remains None.
"""


def test_a_quiz_in_plain_text(check: Check) -> None:
    checked = check(QUIZ, "quiz.txt")
    assert (checked.found, checked.ran) == (2, 2)
    assert [(one.name, one.line) for one in checked.defects] == [(Name.QUESTION_PRESUPPOSES_ERROR, 28)]
    wrong = check(QUIZ.replace("will be 12.0", "will be 6.0"), "quiz.txt")
    assert Name.WRONG_KEY in names(wrong)


def test_code_in_plain_text_runs(check: Check) -> None:
    text = "A page.\n\nSome words.\n\nimport torch\n\nassert torch.ones(1).item() == 2\n\nMore words follow.\n"
    assert [(one.name, one.line) for one in check(text, "page.txt").defects] == [(Name.DOES_NOT_RUN, 7)]


def test_lines_of_a_nested_block_are_those_of_the_file() -> None:
    page = markdown.page("page.md", "# Title\n\n- a\n\n  ```python\n  x = 1\n  ```\n")
    assert [(block.source, block.line) for block in page.blocks] == [("x = 1\n", 6)]
