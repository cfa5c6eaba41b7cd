"""Blocks of Markdown: every fence that says Python, in whatever spelling, however deeply it is nested."""

from __future__ import annotations

import ast
import difflib
import re
from typing import TYPE_CHECKING

import msgspec

from whygrad.check.block import Block, Output, Page, Unknown
from whygrad.execute.markdown import is_python

if TYPE_CHECKING:
    from markdown_it.token import Token

OUTPUT = frozenset({"output", "out", "stdout"})
PLAIN = frozenset({"text", "txt", "plaintext", "none", "console", "bash", ""})
"""Fences that are outputs where the line before them says so."""

SAYS_OUTPUT = re.compile(
    r"^\W*(?:the )?(?:expected )?(?:output|prints|printed|result|gives|this prints)\b[^.]{0,30}:?\W*$", re.I
)
OTHERS = frozenset({"pytb", "pyproject", "pytest", "pyi", "pip", "pypi", "pyramid", "pug", "cython", "pyx"})
KNOWN_PYTHON = ("python", "python3", "py", "pycon", "ipython", "ipython3", "python2")
DOCTEST = frozenset({"pycon", "pycon3", "doctest", "python-console", "python-repl", "pyrepl"})
COMMENT = re.compile(r"<!--+\s*whygrad:\s*(.*?)--+>", re.DOTALL)
OPTION_LINE = re.compile(r"^\s*(?::[\w-]+:.*|#\|.*)$")


def page(path: str, text: str) -> Page:
    """The blocks of a document."""
    from markdown_it import MarkdownIt

    front = re.match(r"\A---\r?\n.*?^---[ \t]*\r?$", text, re.DOTALL | re.MULTILINE)
    if front is not None:
        count = front[0].count("\n") + 1
        text = "\n" * count + "".join(text.splitlines(keepends=True)[count:])
    lines = text.splitlines()
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    blocks: list[Block] = []
    unknown: list[Unknown] = []
    words: list[str] = []
    said = ""
    others = 0
    for token in tokens:
        if token.type in ("html_block", "html_inline"):
            match = COMMENT.search(token.content)
            if match is not None and token.map is not None:
                first, _, code = match[1].partition("\n")
                words = first.split()
                if "hidden" in words and code.strip():
                    at = token.map[0] + 2 + token.content[: match.start()].count("\n")
                    blocks.append(Block(code, at, hidden=True))
                    words = []
            continue
        if token.type == "inline":
            said = token.content
            continue
        if token.type not in ("fence", "code_block") or token.map is None:
            continue
        info = token.info.strip()
        first_line = token.map[0] + (2 if token.type == "fence" else 1)
        if token.type == "code_block":
            if _reads_as_python(token.content):
                blocks.append(_block(token.content, first_line, ">>>" if _is_doctest(token.content) else "", words))
            words, said = [], ""
            continue
        name = _name(info)
        if is_python(info) or name in DOCTEST:
            blocks.append(_block(_without_options(token.content), first_line, info, words))
        elif _is_output(name, said, blocks, lines, token):
            blocks[-1] = msgspec.structs.replace(blocks[-1], output=_output(token, lines, first_line))
        elif (why := _is_suspicious(name, info, token.content)) and "skip" not in words:
            unknown.append(Unknown(token.map[0] + 1, info, why))
        else:
            others += 1
        words, said = [], ""
    return Page(path, tuple(blocks), tuple(unknown), others)


def _name(info: str) -> str:
    words = [word for word in re.split(r"[\s{},.=:]+", info.lower()) if word]
    return words[0] if words else ""


def _block(source: str, line: int, info: str, words: list[str]) -> Block:
    """A block with what its info string, and a comment before it, say of it."""
    said = [word for word in re.split(r"[\s{},]+", info)[1:] if word] + words
    plain = {word.lstrip(".").lower() for word in said}
    raises = None
    skip = ""
    title = ""
    for word in said:
        name, _, value = word.lstrip(".").partition("=")
        if name.lower() in ("raises", "expect-error", "should-fail"):
            raises = value.strip("\"'")
        elif name.lower() in ("title", "file", "filename"):
            title = value.strip("\"'")
    if plain & {"skip", "no-run", "norun", "no_run", "noexec", "ignore"}:
        skip = "it is marked as not to be run"
    return Block(
        source,
        line,
        is_doctest=_is_doctest(source),
        raises=raises,
        fresh="new" in plain,
        alone=bool(title) or "alone" in plain,
        title=title,
        skip=skip,
    )


def _is_doctest(source: str) -> bool:
    return source.lstrip().startswith(">>> ")


def _without_options(source: str) -> str:
    """The source of a notebook-like cell without the options at its top, each replaced by an empty line."""
    lines = source.splitlines()
    if lines and lines[0].strip() == "---" and "---" in [line.strip() for line in lines[1:]]:
        end = [line.strip() for line in lines[1:]].index("---") + 2
        lines[:end] = [""] * end
    for index, line in enumerate(lines):
        if not OPTION_LINE.match(line):
            break
        lines[index] = ""
    return "\n".join(lines) + "\n"


def _is_output(name: str, said: str, blocks: list[Block], lines: list[str], token: Token) -> bool:
    """Whether a fence shows what the block before it prints."""
    if not blocks or token.map is None or blocks[-1].output is not None:
        return False
    end = blocks[-1].line + blocks[-1].source.count("\n")
    if name in OUTPUT:
        return True
    between = [line.strip(" >*-#") for line in lines[end : token.map[0]] if line.strip(" >*-#")]
    return name in PLAIN and len(between) <= 1 and bool(SAYS_OUTPUT.match(said))


def _output(token: Token, lines: list[str], first: int) -> Output:
    text = token.content
    count = text.count("\n")
    prefix = ""
    if count and text.splitlines()[0] and first - 1 < len(lines):
        line = lines[first - 1]
        prefix = line[: line.find(text.splitlines()[0])] if text.splitlines()[0] in line else ""
    return Output(text, first, first + count, prefix)


def _is_suspicious(name: str, info: str, source: str) -> str:
    """Why a fence that does not say Python looks as if it meant it."""
    if name in OTHERS:
        return ""
    if name and (
        re.match(r"(?:py|ipy|cpython|micropython|jupyter)", name)
        or difflib.get_close_matches(name, KNOWN_PYTHON, 1, 0.8)
    ):
        return f"`{info}` is not a spelling of Python that is known; write `python`"
    if not name and re.search(r"^\s*(?:import|from) torch\b", source, re.MULTILINE) and _parses(source):
        return "a fence without a language holds Python; write ```python"
    return ""


def _parses(source: str) -> bool:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError):
        return False
    return True


def _reads_as_python(source: str) -> bool:
    """Whether an indented block is code and not a text: it is a session, or imports something and parses."""
    if _is_doctest(source):
        return True
    return bool(re.search(r"^(?:import|from) \w+", source, re.MULTILINE)) and _parses(source)
