"""Notebooks: their code cells in order, what is left out of them, and which are refused."""

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from side_by_side_runs import Folder

from whygrad.errors import BadInput
from whygrad.execute import notebook

CODE = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}


def document(*sources: object, **changed: object) -> bytes:
    cells = [source if isinstance(source, dict) else {**CODE, "source": source} for source in sources]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells, **changed}).encode()


def refused(content: bytes) -> str:
    with pytest.raises(BadInput) as caught:
        notebook.cells("lab.ipynb", "/here/lab.ipynb", content)
    return str(caught.value)


def test_cells_are_numbered_as_jupyter_runs_them() -> None:
    text = {"cell_type": "markdown", "metadata": {}, "source": ["# A title"]}
    found, notes = notebook.cells("lab.ipynb", "/here/lab.ipynb", document(["x = 1\n", "y = 2"], text, "", "print(x)"))
    assert [(cell.path, cell.source) for cell in found] == [
        ("/here/lab.ipynb[1]", "x = 1\ny = 2\n"), ("/here/lab.ipynb[2]", "print(x)\n"),
    ]  # fmt: skip
    assert notes == ()


def test_what_sets_up_the_notebook_is_left_out_and_said_to_be() -> None:
    source = (
        "%matplotlib inline\nimport torch\nif True:\n    %load_ext autoreload\nx = 5\ny = (x\n% 3)\nz = '''\n%time\n'''"
    )
    (cell,), notes = notebook.cells("lab.ipynb", "lab.ipynb", document(source))
    assert cell.source == source.replace("%matplotlib inline", "pass").replace("%load_ext autoreload", "pass") + "\n"
    assert notes == (
        "lab.ipynb, cell 1, line 1: `%matplotlib inline` was left out",
        "lab.ipynb, cell 1, line 4: `%load_ext autoreload` was left out",
    )


@pytest.mark.parametrize("line", [
    "!pip install torch", "%%bash", "%run other.py", "files = !ls", "x = %timeit -o 1", "?print", "print?", "%cd ..",
    "  !ls",
])  # fmt: skip
def test_other_magics_are_refused_with_their_place(line: str) -> None:
    sentence = refused(document("x = 1", f"x = 2\n{line}\nprint(x)"))
    assert sentence == f"lab.ipynb, cell 2, line 2: `{line.strip()}` is IPython's, not Python; it cannot be run here."


@pytest.mark.parametrize(("content", "sentence"), [
    (b"", "lab.ipynb:1: is cut off: Expecting value."),
    (document("x = 1")[:-20], "lab.ipynb:1: is cut off: "),
    (b"print(1)\n", "lab.ipynb:1: is not a notebook: Expecting value."),
    (b"[]", "lab.ipynb: is not a notebook: it names no notebook format."),
    (b"\xff\xfe{}", "lab.ipynb: is not a notebook: it is not UTF-8 text."),
    (document("x", nbformat=3), "lab.ipynb: is in notebook format 3, not 4; open and save it in Jupyter."),
    (document("x", cells=None), "lab.ipynb: is not a notebook: it has no list of cells."),
    (document("x", metadata={"kernelspec": {"language": "R"}}), "lab.ipynb: is a notebook in r, not in Python."),
    (document("x = 1", {"source": "x"}), "lab.ipynb: item 2 of its cells is broken: it has no cell type."),
    (document({**CODE, "source": 5}), "lab.ipynb: item 1 of its cells is broken: its source is not text."),
    (document({**CODE, "source": ["x", 5]}), "lab.ipynb: item 1 of its cells is broken: its source is not text."),
    (document(7), "lab.ipynb: item 1 of its cells is broken: its source is not text."),
    (document("", "  \n"), "lab.ipynb: has no code cell, so there is nothing to run."),
    (b"[" * 100_000, "lab.ipynb"),
])  # fmt: skip
def test_what_is_no_notebook_is_refused(content: bytes, sentence: str) -> None:
    assert refused(content).startswith(sentence)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: (
    st.lists(inner) | st.dictionaries(st.sampled_from(["cells", "nbformat", "cell_type", "source", "metadata"]), inner)
)))  # fmt: skip
def test_any_json_is_read_or_refused(value: object) -> None:
    content = json.dumps({"nbformat": 4, "cells": value} if not isinstance(value, dict) else value).encode()
    with contextlib.suppress(BadInput):
        notebook.cells("lab.ipynb", "lab.ipynb", content)


def test_a_real_notebook_is_read(tmp_path: Path) -> None:
    import nbformat

    made = nbformat.v4.new_notebook()
    made.cells = [nbformat.v4.new_markdown_cell("# Title"), nbformat.v4.new_code_cell("x = 1\nprint(x)")]
    nbformat.write(made, tmp_path / "lab.ipynb")
    found, _ = notebook.cells("lab.ipynb", "lab.ipynb", (tmp_path / "lab.ipynb").read_bytes())
    assert [cell.source for cell in found] == ["x = 1\nprint(x)\n"]


def test_cells_run_in_one_namespace_until_one_fails(folder: Folder) -> None:
    folder.file("lab.ipynb", document("def f(n):\n    return 1 / n", "print(f(1), __name__, '__file__' in globals())",
                                      "f(0)", "print('never')"))  # fmt: skip
    ours = folder.ours("lab.ipynb")
    path = folder.path / "lab.ipynb"
    assert ours.seen.stdout == "1.0 __main__ False\n"
    assert ours.seen.exit_code == 1
    lines = [line.strip() for line in ours.seen.stderr.splitlines() if "^" not in line]
    assert lines == [
        "Traceback (most recent call last):",
        f'File "{path}[3]", line 1, in <module>', "f(0)",
        f'File "{path}[1]", line 2, in f', "return 1 / n",
        "ZeroDivisionError: division by zero",
    ]  # fmt: skip
    assert ours.compiled == ["lab.ipynb[1]", "lab.ipynb[2]", "lab.ipynb[3]", "lab.ipynb[4]"]


def test_a_cell_that_is_not_python_is_named(folder: Folder) -> None:
    folder.file("lab.ipynb", document("print(1)", "x = 1\ny = = 2"))
    seen = folder.ours("lab.ipynb").seen
    assert (seen.exit_code, seen.stdout) == (2, "")
    assert seen.stderr == "whygrad: lab.ipynb[2]:2: SyntaxError: invalid syntax: y = = 2\n"
