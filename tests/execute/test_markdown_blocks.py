"""Markdown documents: their Python blocks are one program whose lines are the document's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from side_by_side_runs import Folder

from whygrad.errors import BadInput
from whygrad.execute import markdown

GUIDE = """# Guide

```python
x = 1
```

Some text, and a shell:

```sh
echo no
```

1. In a list:

   ~~~py title="second.py"
   if x:
       print(x / 0)
   ~~~
"""


def cell_of(text: str) -> str:
    source = markdown.cell("guide.md", "/here/guide.md", text.encode()).source
    assert isinstance(source, str)
    return source


def test_lines_keep_the_numbers_of_the_document() -> None:
    lines = cell_of(GUIDE).splitlines()
    assert lines[3] == "x = 1"
    assert lines[15:17] == ["if x:", "    print(x / 0)"]
    assert [line for line in lines if line] == ["x = 1", "if x:", "    print(x / 0)"]


@pytest.mark.parametrize("info", [
    "python", "Python", "py", "python3", "{python}", "{.python .numberLines}", "{code-cell} ipython3",
    "{code-block} python", "python,ignore", "py:run",
])  # fmt: skip
def test_every_spelling_of_python_is_known(info: str) -> None:
    assert cell_of(f"```{info}\nx = 1\n```\n") == "\nx = 1\n"


@pytest.mark.parametrize("info", ["", "pycon", "text", "c", "pythonic", "{code-block} rust", "console"])
def test_other_languages_are_not_run(info: str) -> None:
    with pytest.raises(BadInput, match=r"guide.md: has no Python block"):
        cell_of(f"```{info}\nx = 1\n```\n    y = 1\n")


def test_a_fence_that_is_not_closed_goes_to_the_end() -> None:
    assert cell_of("```python\nx = 1\ny = 2") == "\nx = 1\ny = 2\n"


@given(
    st.lists(
        st.sampled_from(
            ["```python", "```", "~~~py", "~~~", "x = 1", "> ```py", "> y = 2", "- a", "    z", "", "\ttab"]
        )
    )
)
def test_a_line_is_empty_or_ends_the_documents_line(lines: list[str]) -> None:
    try:
        source = cell_of("\n".join(lines))
    except BadInput:
        return
    for ours, theirs in zip(source.splitlines(), lines, strict=False):
        assert theirs.expandtabs(4).endswith(ours.expandtabs(4))


@pytest.mark.parametrize(("content", "sentence"), [
    (b"text\n\xff\n", "guide.md:2: is not UTF-8 text (byte 0xff)."),
    (b"text\n\n\0\n", "guide.md:3: holds a NUL character."),
    (b"", "guide.md: has no Python block (a fence that begins ```python), so there is nothing to run."),
])  # fmt: skip
def test_what_is_no_document_is_refused(content: bytes, sentence: str) -> None:
    with pytest.raises(BadInput) as caught:
        markdown.cell("guide.md", "guide.md", content)
    assert str(caught.value) == sentence


def test_tracebacks_point_into_the_document(folder: Folder) -> None:
    path = folder.file("guide.md", GUIDE)
    seen = folder.ours("guide.md").seen
    lines = [line.strip() for line in seen.stderr.splitlines() if "^" not in line]
    assert lines == [
        "Traceback (most recent call last):", f'File "{path}", line 17, in <module>', "print(x / 0)",
        "ZeroDivisionError: division by zero",
    ]  # fmt: skip


def test_a_block_that_is_not_python_is_named_by_its_line(folder: Folder) -> None:
    folder.file("guide.md", GUIDE.replace("x / 0)", "x / 0"))
    seen = folder.ours("guide.md").seen
    assert seen.exit_code == 2
    assert seen.stderr == "whygrad: guide.md:17: SyntaxError: '(' was never closed: print(x / 0\n"
