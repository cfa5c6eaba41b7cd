"""Ledgers on disk: JSON Lines, the header first, then one event a line.

Each event is handed to the operating system before `write` returns, so a killed process loses at most the
event it was writing. The reader keeps nothing but its place: a file of any size streams.
"""

from __future__ import annotations

import mmap
import os
import stat
import weakref
from collections.abc import Iterator
from functools import cache
from io import BufferedReader
from types import TracebackType
from typing import Any, BinaryIO

import msgspec

from whygrad.errors import BadInput
from whygrad.ledger.events import AnyEvent, Event, Header
from whygrad.ledger.ledger import Ledger
from whygrad.outputs import create

SCHEMA = 1
"""The version of the ledger's format that this whygrad writes, and the newest that it reads."""

HEADER_LIMIT = 1 << 20
"""No header is longer than this; a file without a line end so far is something else."""


ALLOCATION = 1 << 18
"""A ledger's file grows by this many bytes; what is not used yet holds zeros and is cut off at the end."""


class Writer:
    """Appends events to a ledger.

    Given a path, it creates the file (`force` to replace one that exists) and owns it; given a binary file,
    it writes and flushes there and leaves closing to its owner. A child made by `fork` must not use it.
    """

    def __init__(self, target: str | os.PathLike[str] | BinaryIO, header: Header, *, force: bool = False) -> None:
        self._encode = msgspec.json.Encoder().encode
        self._file: BinaryIO | None = None
        self._descriptor: int | None = None
        self._process = os.getpid()
        self._length = self._allocated = 0
        self._map: mmap.mmap = mmap.mmap(-1, 1)
        if isinstance(target, str | os.PathLike):
            self._descriptor = create(target, force=force)
        else:
            self._file = target
        self._append(header)

    def write(self, event: Event) -> None:
        """Append one event; it survives the process from here on."""
        self._append(event)

    def close(self) -> None:
        """Finish the file. A second call does nothing."""
        self._file = None
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            self._map.close()
            if os.getpid() == self._process:  # a forked child that unwinds must not cut what its parent wrote since
                os.ftruncate(descriptor, self._length)
            os.close(descriptor)

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _put(self, data: bytes) -> None:
        """Copy into the file's own pages: they outlive the process, at a fraction of a system call's cost.

        The pages are allocated by writing zeros first, so a full disk is an OSError here and not a SIGBUS there.
        """
        assert self._descriptor is not None
        end = self._length + len(data)
        if end > self._allocated:
            allocated = self._allocated + ALLOCATION * (1 + len(data) // ALLOCATION)
            blank = bytes(allocated - self._allocated)
            while blank:
                blank = blank[os.write(self._descriptor, blank) :]
            self._allocated = allocated
            self._map.close()
            self._map = mmap.mmap(self._descriptor, allocated)
        self._map[self._length : end] = data
        self._length = end

    def _append(self, line: Event | Header) -> None:
        try:
            data = self._encode(line) + b"\n"
        except UnicodeEncodeError:  # text with lone surrogates, such as a path that is not UTF-8
            data = self._encode(_printable(msgspec.to_builtins(line))) + b"\n"
        if self._descriptor is not None:
            self._put(data)
        elif self._file is not None:
            self._file.write(data)
            self._file.flush()
        else:
            raise ValueError("the ledger is closed")


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, list | tuple):
        return [_printable(item) for item in value]
    if isinstance(value, dict):
        return {_printable(key): _printable(item) for key, item in value.items()}
    return value


def read(path: str | os.PathLike[str]) -> Ledger:
    """The ledger in a file, read as it is asked for.

    A last line that was cut off is left out, and `Ledger.torn` says so. Events that are appended later are
    not part of it. Raises `BadInput` for anything that is not a ledger of this version or an older one.
    """
    name = os.fspath(path)
    try:
        with _opened(name) as file:
            header_line = file.readline(HEADER_LIMIT)
            header = _header(name, header_line)
            size = os.fstat(file.fileno()).st_size
            start = len(header_line)
            size = _end_of_text(file, start, size)
            end = _end_of_last_event(file, start, size)
    except OSError as error:
        raise BadInput(f"{name}: cannot be read: {error.strerror or error}.") from None
    torn = "" if end == size else f"The last line of {name} was cut off while it was written; it was left out."
    return Ledger(header, _InFile(name, start, end, torn))


def _opened(name: str) -> BufferedReader:
    try:
        if not stat.S_ISREG(mode := os.stat(name).st_mode):  # asked before opening, which would wait on a pipe
            kind = "a directory" if stat.S_ISDIR(mode) else "a device or a pipe"
            raise BadInput(f"{name}: is {kind}, not a ledger.")
        return open(name, "rb")
    except FileNotFoundError:
        raise BadInput(f"{name}: there is no such file.") from None
    except ValueError as error:  # a NUL in the name
        raise BadInput(f"{name!r}: is not a file name: {error}.") from None


class _Version(msgspec.Struct):
    """What a header of any version must have."""

    whygrad: str
    schema: int


def _header(name: str, line: bytes) -> Header:
    if not line:
        raise BadInput(f"{name}: is empty, not a ledger.")
    try:
        version = msgspec.json.decode(line, type=_Version)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        cut_off = not line.endswith(b"\n") and line.startswith(b'{"whygrad":') and "truncated" in str(error)
        fault = "its header was cut off, so nothing in it can be read" if cut_off else "is not a ledger of whygrad's"
        raise BadInput(f"{name}: {fault}.") from None
    if version.schema > SCHEMA:
        raise BadInput(
            f"{name}: was written by whygrad {version.whygrad} with schema {version.schema}, and this version reads "
            f"schemas up to {SCHEMA}: upgrade whygrad."
        )
    try:
        return msgspec.json.decode(line, type=Header)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{name}:1: the ledger's header is damaged: {error}.") from None


def _end_of_text(file: BufferedReader, start: int, size: int) -> int:
    """`size` without the zeros that a killed writer had allocated and not used."""
    while size > start:
        length = min(ALLOCATION, size - start)
        file.seek(size - length)
        text = file.read(length).rstrip(b"\0")
        if text:
            return size - length + len(text)
        size -= length
    return size


def _end_of_last_event(file: BufferedReader, start: int, size: int) -> int:
    """Where the last whole event ends: `size`, or the start of a last line that was cut off."""
    step = 1 << 16
    position, tail = size, b""
    while position > start:
        length = min(step, position - start)
        position -= length
        file.seek(position)
        tail = file.read(length) + tail
        newline = tail.rfind(b"\n", 0, len(tail) - 1)
        if newline >= 0:
            position, tail = position + newline + 1, tail[newline + 1 :]
            break
    if not tail:
        return size
    try:
        msgspec.json.decode(tail, type=_Kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return position
    return size


class _Kind(msgspec.Struct):
    """What every event of any version has."""

    event: str
    seq: int


@cache
def _decoder() -> msgspec.json.Decoder[AnyEvent]:
    return msgspec.json.Decoder(AnyEvent)


@cache
def _known_kinds() -> frozenset[str]:
    return frozenset(str(kind.__struct_config__.tag) for kind in AnyEvent.__args__)


class _InFile:
    """Events in a file; a position is an offset in bytes."""

    def __init__(self, name: str, start: int, end: int, torn: str) -> None:
        self.torn = torn
        self.skipped: dict[str, int] = {}
        self._name = name
        self._start = start
        self._end = end
        self._counted = False
        self._random: BufferedReader | None = None

    def end(self) -> int:
        return self._end

    def since(self, position: int) -> Iterator[tuple[int, AnyEvent]]:
        decode = _decoder().decode
        position = max(position, self._start)
        skipped: dict[str, int] = {}
        whole = position == self._start
        try:
            with open(self._name, "rb") as file:
                file.seek(position)
                end = self._end
                for line in file:
                    if position >= end:
                        break
                    try:
                        event = decode(line)
                    except (msgspec.DecodeError, UnicodeDecodeError) as error:
                        kind = self._unknown_kind(line, position, error)
                        skipped[kind] = skipped.get(kind, 0) + 1
                    else:
                        yield position, event
                    position += len(line)
        except OSError as error:
            raise BadInput(f"{self._name}: cannot be read: {error.strerror or error}.") from None
        if whole:
            self.skipped = skipped

    def at(self, position: int) -> AnyEvent:
        if self._random is None:
            self._random = _opened(self._name)
            weakref.finalize(self, self._random.close)
        self._random.seek(position)
        return _decoder().decode(self._random.readline())

    def _unknown_kind(self, line: bytes, position: int, error: Exception) -> str:
        try:
            kind = msgspec.json.decode(line, type=_Kind).event
        except (msgspec.DecodeError, UnicodeDecodeError):
            kind = ""
        if not kind or kind in _known_kinds():
            number = self._line_number(position)
            raise BadInput(f"{self._name}:{number}: the ledger is damaged here: {error}.") from None
        return kind

    def _line_number(self, position: int) -> int:
        with open(self._name, "rb") as file:
            remaining, newlines = position, 0
            while remaining > 0 and (block := file.read(min(1 << 20, remaining))):
                newlines += block.count(b"\n")
                remaining -= len(block)
        return newlines + 1
