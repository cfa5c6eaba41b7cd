"""Blocks of reStructuredText: code directives, and sessions that begin with >>>."""

from __future__ import annotations

import re
import textwrap

import msgspec

from whygrad.check.block import Block, Output, Page, Unknown
from whygrad.execute.markdown import LANGUAGES

DIRECTIVE = re.compile(r"^(\s*)\.\.\s+([\w-]+)::\s*(\S*)\s*$")
CODE = frozenset({"code-block", "code", "sourcecode", "ipython"})
OPTION = re.compile(r"^\s*:([\w-]+):\s*(.*)$")


def page(path: str, text: str) -> Page:
    """The blocks of a document."""
    lines = text.splitlines()
    blocks: list[Block] = []
    unknown: list[Unknown] = []
    others = 0
    index = 0
    while index < len(lines):
        match = DIRECTIVE.match(lines[index])
        if match is not None:
            end, source, first, options = _body(lines, index, len(match[1]))
            name, language = match[2].lower(), match[3].lower()
            if (name in CODE and language in LANGUAGES) or name in ("testcode", "testsetup", "doctest"):
                skip = "it is marked as not to be run" if "no-run" in options else ""
                raises = options.get("raises")
                is_session = source.lstrip().startswith(">>> ")
                blocks.append(Block(source, first, is_session, raises, skip=skip, hidden=name == "testsetup"))
            elif name == "testoutput" and blocks:
                count = source.count("\n")
                blocks[-1] = msgspec.structs.replace(blocks[-1], output=Output(source, first, first + count))
            elif name in CODE and re.match(r"i?py", language) and language not in ("pytb", "pycon"):
                unknown.append(Unknown(index + 1, language, f"`{language}` is not a spelling of Python that is known"))
            elif name in CODE and language == "pycon":
                blocks.append(Block(source, first, True))
            elif name in CODE:
                others += 1
            index = end
        elif lines[index].lstrip().startswith(">>> "):
            end = index
            while end < len(lines) and lines[end].strip():
                end += 1
            source = textwrap.dedent("\n".join(lines[index:end]) + "\n")
            blocks.append(Block(source, index + 1, True))
            index = end
        else:
            index += 1
    return Page(path, tuple(blocks), tuple(unknown), others)


def _body(lines: list[str], start: int, indent: int) -> tuple[int, str, int, dict[str, str]]:
    """A directive's content: where it ends, its text, the line that it begins on, and the directive's options."""
    end = start + 1
    while end < len(lines) and (not lines[end].strip() or len(lines[end]) - len(lines[end].lstrip()) > indent):
        end += 1
    options = {}
    first = start + 1
    while first < end and (match := OPTION.match(lines[first])) is not None:
        options[match[1]] = match[2].strip()
        first += 1
    while first < end and not lines[first].strip():
        first += 1
    source = textwrap.dedent("\n".join(lines[first:end]).rstrip() + "\n")
    return end, source, first + 1, options
