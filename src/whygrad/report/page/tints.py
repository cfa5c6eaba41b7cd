"""Finds the keywords and comments of Python source, so that a listing can set them apart. No other colours."""

from __future__ import annotations

import io
import keyword
import tokenize
from collections.abc import Mapping

from whygrad.report.parts import Part


class Tint(Part, frozen=True):
    """Columns of a line that are a `keyword` or a `comment`."""

    start: int
    end: int
    kind: str


def tints(text: str) -> Mapping[int, list[Tint]]:
    """By line, as far as the text can be read as Python.

    >>> tints("x = 1  # one")[1]
    [Tint(start=7, end=12, kind='comment')]
    """
    found: dict[int, list[Tint]] = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline=None).readline):
            if kind := _kind(token):
                found.setdefault(token.start[0], []).append(Tint(start=token.start[1], end=token.end[1], kind=kind))
    except (tokenize.TokenError, SyntaxError, ValueError):
        pass  # a notebook's magic, say: plain text from here on
    return found


def _kind(token: tokenize.TokenInfo) -> str:
    if token.type == tokenize.COMMENT:
        return "comment"
    return "keyword" if token.type == tokenize.NAME and keyword.iskeyword(token.string) else ""
