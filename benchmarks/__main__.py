"""`python -m benchmarks [NAME...]` asks all questions, or some, and prints what was measured.

With `--write FILE` the tables are also put into the Markdown file, between its marks for each question.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import strftime

from benchmarks.table import Table

QUESTIONS = ("overhead", "startup", "memory", "python_loop", "embedded")
VERSIONS = ("whygrad", "torch", "numpy", "rich", "click", "msgspec", "torchlens", "wandb")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure what recording costs.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"a question: {', '.join(QUESTIONS)} (default: all)")
    parser.add_argument("--write", metavar="FILE", type=Path, help="put the tables into this Markdown file, too")
    given = parser.parse_args(arguments)
    unknown = sorted(set(given.names) - set(QUESTIONS))
    if unknown:
        parser.error(f"no such question: {', '.join(unknown)}; there are {', '.join(QUESTIONS)}")
    print(f"{machine()}\n", flush=True)
    for name in given.names or QUESTIONS:
        tables = []
        for table in import_module(f"benchmarks.{name}").ask():
            print(f"{table.markdown()}\n", flush=True)
            tables.append(table)
        if given.write:
            write(given.write, name, tables)


def machine() -> str:
    """When and where: the day, the processor, the versions, and how busy the machine was."""
    versions = ["Python " + ".".join(map(str, sys.version_info[:3]))]
    for name in VERSIONS:
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    load = f"; load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"{strftime('%Y-%m-%d')}; {_processor()}, {os.cpu_count()} cores{load}; {', '.join(versions)}."


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        from platform import machine, processor

        return processor() or machine()
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1] if found else "processor unknown"


def write(path: Path, name: str, tables: Sequence[Table]) -> None:
    """Put the tables of a question between its marks."""
    text = path.read_text(encoding="utf-8")
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    if begin not in text or end not in text:
        sys.exit(f"{path}: has no marks `{begin}` and `{end}`.")
    head, _, rest = text.partition(begin)
    body = "\n\n".join([f"Measured on {machine()}", *(table.markdown() for table in tables)])
    path.write_text(f"{head}{begin}\n{body}\n{end}{rest.partition(end)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
