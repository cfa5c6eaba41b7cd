"""Output files: the one place that opens, finishes and cleans them up. Nothing is overwritten unasked."""

from __future__ import annotations

import os
from typing import TypeAlias

from whygrad.errors import BadInput

PathLike: TypeAlias = str | os.PathLike[str]

HIGH_DESCRIPTOR = 500


def check(path: PathLike, *, force: bool = False) -> None:
    """Raise `BadInput` now if `path` could not be written later; touches nothing."""
    name = os.fspath(path)
    folder = os.path.dirname(name) or "."
    if os.path.isdir(name):
        raise BadInput(f"{name}: is a directory; name a file in it.")
    if not os.path.isdir(folder):
        raise BadInput(f"{name}: there is no directory {folder}.")
    if not force and os.path.lexists(name) and not _is_stream(name):
        raise BadInput(f"{name}: exists already; use --force to overwrite it.")
    if not os.access(name if os.path.exists(name) else folder, os.W_OK):
        raise BadInput(f"{name}: cannot be written: permission denied.")


def create(path: PathLike, *, force: bool = False) -> int:
    """A descriptor that appends to a new file, for what must outlive its writer line by line (a ledger)."""
    check(path, force=force)
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    if _is_stream(path):
        raise BadInput(f"{os.fspath(path)}: is a device or a pipe; a ledger needs a file, which is read again.")
    try:
        return _out_of_sight(os.open(path, flags | (os.O_TRUNC if force else os.O_EXCL), 0o666))
    except OSError as error:
        raise _refused(path, error) from None


def _out_of_sight(descriptor: int) -> int:
    """The same file under a high number: a program's own files get the numbers that they get without us."""
    try:
        import fcntl

        high = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, HIGH_DESCRIPTOR)
    except (ImportError, OSError):  # not on this system, or not that many files allowed
        return descriptor
    os.close(descriptor)
    return high


def save(path: PathLike, text: str, *, force: bool = False) -> None:
    """Write a whole file or nothing: `text` appears under its name only when all of it is on disk."""
    check(path, force=force)
    data = text.encode("utf-8", "backslashreplace")
    try:
        if _is_stream(path):
            with open(path, "wb") as file:
                file.write(data)
        else:
            _put_in_place(os.path.realpath(path), data, force=force)
    except OSError as error:
        raise _refused(path, error) from None


def replace(path: PathLike, data: bytes) -> None:
    """Give an existing file another content, whole or not at all; its mode stays."""
    target = os.path.realpath(path)
    try:
        mode = os.stat(target).st_mode
        _put_in_place(target, data, force=True)
        os.chmod(target, mode & 0o7777)
    except OSError as error:
        raise _refused(path, error) from None


def _put_in_place(target: str, data: bytes, *, force: bool) -> None:
    """Write beside `target`, then give the file its name; what is not finished is removed."""
    unfinished = f"{target}.{os.getpid()}.unfinished"
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        if not force and os.path.lexists(target):
            raise FileExistsError
        os.replace(unfinished, target)
    finally:
        if os.path.lexists(unfinished):
            os.unlink(unfinished)


def _is_stream(path: PathLike) -> bool:
    """A device or a pipe: there is nothing in it to lose, and it can only be written to, not replaced."""
    return os.path.exists(path) and not os.path.isfile(path)


def _refused(path: PathLike, error: OSError) -> BadInput:
    if isinstance(error, FileExistsError):
        return BadInput(f"{os.fspath(path)}: exists already; use --force to overwrite it.")
    return BadInput(f"{os.fspath(path)}: cannot be written: {error.strerror or error}.")
