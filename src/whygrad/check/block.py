"""A block of Python on a page, and what the page claims of it."""

from __future__ import annotations

import msgspec


class Output(msgspec.Struct, frozen=True):
    """Text that a page shows as what a block prints. `first` to `last` are its lines in the file (`last` excluded).

    `prefix` stands before each of them (in a quotation or a list).
    """

    text: str
    first: int
    last: int
    prefix: str = ""


class Block(msgspec.Struct, frozen=True):
    """Python of a page. `line` is that of the file on which `source` begins.

    `raises` names the error that is expected ("" for any), None for none. `fresh` starts a new program; `alone` is
    one that shares nothing with the page, `title` its file's name. `skip` says why it is not to be run. `hidden`
    blocks are not shown to the reader. `prelude` is code that runs before, and is not the page's.
    """

    source: str
    line: int
    is_doctest: bool = False
    raises: str | None = None
    fresh: bool = False
    alone: bool = False
    title: str = ""
    skip: str = ""
    hidden: bool = False
    output: Output | None = None
    value: str | None = None
    prelude: str = ""


class Unknown(msgspec.Struct, frozen=True):
    """A block that looks like Python and is not marked as it."""

    line: int
    info: str
    why: str


class Page(msgspec.Struct, frozen=True):
    """What a file holds for a check. `columns` counts from where a block's text begins in the file's lines."""

    path: str
    blocks: tuple[Block, ...] = ()
    unknown: tuple[Unknown, ...] = ()
    others: int = 0
