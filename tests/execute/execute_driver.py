"""Runs what its arguments name through `whygrad.execute`; writes how it ended to the file `$DRIVER_LOG`.

`$DRIVER_TRANSFORM` chooses how files are compiled: plainly, by no transform, or by one that fails.
"""

import os
import sys

from whygrad.errors import WhygradError
from whygrad.execute import program
from whygrad.execute.run import Outcome, execute

LOG = os.environ.pop("DRIVER_LOG")
TRANSFORM = os.environ.pop("DRIVER_TRANSFORM", "plain")


def log(*words: object) -> None:
    with open(LOG, "a") as file:
        print(*words, file=file)


def finish(outcome: Outcome) -> None:
    import json  # a program's folder may hold a json.py of its own

    log("ended", json.dumps([outcome.how, outcome.exit_code, type(outcome.error).__name__]))


def lost(what: str, why: str) -> None:
    log("lost", os.path.basename(what), why)


def plain(source: bytes | str, path: str):
    log("compiled", os.path.basename(path))
    return compile(source, path, "exec", dont_inherit=True)


def failing(_source: bytes | str, _path: str):
    raise ValueError("no")


def wrong(_source: bytes | str, _path: str):
    raise SyntaxError("not really")


def main() -> None:
    first, *rest = sys.argv[1:]
    if first == "-m":
        found = program.module(rest[0], rest[1:])
    elif first == "-c":
        found = program.code(rest[0], rest[1:])
    elif first == "-":
        found = program.standard_input(rest)
    else:
        found = program.file(first, rest)
    transform = {"plain": plain, "none": None, "failing": failing, "wrong": wrong}[TRANSFORM]
    execute(found, finish=finish, lost=lost, transform=transform)


if __name__ == "__main__":
    try:
        main()
    except WhygradError as error:
        print("whygrad:", error, file=sys.stderr)
        sys.exit(2)
