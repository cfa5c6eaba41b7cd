"""The Python blocks of a Markdown document as one program whose lines keep the document's numbers."""

from __future__ import annotations

import re

from whygrad.errors import BadInput
from whygrad.execute.program import Cell

LANGUAGES = frozenset({"python", "python3", "py", "py3", "ipython", "ipython3"})
_DIRECTIVES = frozenset({"code", "code-block", "code-cell", "sourcecode"})


def cell(name: str, path: str, document: bytes) -> Cell:
    """The blocks in order; every line outside of them is empty, so that evidence points into the document."""
    try:
        text = document.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = document.count(b"\n", 0, error.start) + 1
        raise BadInput(f"{name}:{line}: is not UTF-8 text (byte 0x{document[error.start]:02x}).") from None
    if "\0" in text:
        raise BadInput(f"{name}:{text[: text.index(chr(0))].count(chr(10)) + 1}: holds a NUL character.")
    lines = [""] * (text.count("\n") + 2)
    blocks = 0
    for first, content in _blocks(text):
        blocks += 1
        lines[first : first + len(content)] = content
    if not blocks:
        raise BadInput(f"{name}: has no Python block (a fence that begins ```python), so there is nothing to run.")
    return Cell("\n".join(lines).rstrip("\n") + "\n", path)


def _blocks(text: str) -> list[tuple[int, list[str]]]:
    """Each Python block: the index of its first line in the document, and its lines."""
    from markdown_it import MarkdownIt

    return [
        (token.map[0] + 1, token.content.removesuffix("\n").split("\n"))
        for token in MarkdownIt("commonmark").parse(text)
        if token.type == "fence" and token.map is not None and is_python(token.info)
    ]


def is_python(info: str) -> bool:
    """Whether a fence's info string says Python.

    >>> is_python("python title=train.py"), is_python("{code-cell} ipython3"), is_python("{.py}"), is_python("pycon")
    (True, True, True, False)
    """
    words = [word for word in re.split(r"[\s{},.=:]+", info.lower()) if word]
    if words and words[0] in _DIRECTIVES:
        words = words[1:]
    return bool(words) and words[0] in LANGUAGES
