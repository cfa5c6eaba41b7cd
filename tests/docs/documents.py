"""The blocks of a Markdown document: what each of them claims, what really happens, and how to write that back.

A document is tested by its fenced blocks. They run in an empty folder with a copy of `examples/`, in this order:

    python title=NAME   a program: the file NAME of that folder (one in examples/ must be the same)
    console             lines after `$ ` are commands (`> ` goes on with one), the others what they print, both
                        streams together; the commands of a block share a shell
    python              runs, all of a document in one process; an `output` block that follows holds what it prints
    json title=NAME     lines that are found in the ledger NAME

In what is expected, `...` stands for any text within a line, and as a line of its own for any number of lines.
All other blocks are only read.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import takewhile, zip_longest
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
LIMIT_S = 300

NOT_RUN = ("make ", "pip ", "git ", "uv ")
"""Commands that a document may show and a test must not run."""

MAY_LACK = ("jq",)
"""Programs that are not everybody's: without them their commands are not run."""

ANY = "..."
OPEN = 3
"""An update lets one line of dots stand for at most so many lines."""

MAYBE = "\0"
MARK = "\x1e"

DRIVER = """
import sys
names = {"__name__": "__main__"}
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        code = compile(file.read(), path, "exec")
    exec(code, names)
    print(end="\\x1e", flush=True)
"""


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block. `line` is that of its first line of content, from 1."""

    language: str
    title: str
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Claim:
    """What a document says is printed, and what is. `line` is where the claim begins, and `text` is all of it.

    `is_fact` is false where what was found must not be written into the document: nothing, or an exception.
    """

    line: int
    about: str
    text: str
    found: str
    is_fact: bool = True

    @property
    def holds(self) -> bool:
        return matches(self.text, self.found)


def documents() -> list[Path]:
    """The documents that are tested."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(path: Path) -> list[Block]:
    """The fenced blocks of a document."""
    found = []
    for token in MarkdownIt("commonmark").parse(path.read_text(encoding="utf-8")):
        if token.type == "fence" and token.map is not None:
            language, _, rest = token.info.strip().partition(" ")
            title = re.match(r"title=\"?([^\"\s]+)\"?", rest.strip())
            found.append(Block(language, title[1] if title else "", token.content, token.map[0] + 2))
    return found


def claims(path: Path, folder: Path) -> Iterator[Claim]:
    """Do in `folder` what the document says, and tell what came of it."""
    found = blocks(path)
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    for block in found:
        if block.language == "python" and block.title:
            yield from _program(block, folder)
    for block in found:
        if block.language == "console":
            yield from _console(block, folder)
    yield from _python(path, found, folder)
    for block in found:
        if block.language == "json" and block.title:
            yield from _ledger(block, folder / block.title)


def _program(block: Block, folder: Path) -> Iterator[Claim]:
    target = folder / block.title
    if target.exists():
        yield Claim(block.line, block.title, block.text, target.read_text(encoding="utf-8"))
    target.write_text(block.text, encoding="utf-8")


# --- commands -----------------------------------------------------------------------------------------


def _console(block: Block, folder: Path) -> Iterator[Claim]:
    wanted = [claim for claim in _commands(block) if _is_run(claim.about)]
    script = "".join(f"{claim.about}\n__status=$?; printf '\\036'; (exit $__status)\n" for claim in wanted)
    printed = _run(["bash", "-c", "exec 2>&1\n" + script], folder).split(MARK)[:-1]
    for claim, found in zip_longest(wanted, printed):
        if found is None:
            yield replace(claim, found="it did not run", is_fact=False)
        else:
            yield replace(claim, found=found.replace(str(folder), ANY))


def _commands(block: Block) -> Iterator[Claim]:
    """The commands of a block with what they are said to print."""
    command, start, expected = "", 0, ""
    for number, line in enumerate(block.text.splitlines(keepends=True), block.line):
        if line.startswith("$ "):
            if command:
                yield Claim(start, command, expected, "")
            command, start, expected = line[2:].rstrip("\n"), number + 1, ""
        elif line.startswith("> ") and command and not expected:
            command, start = f"{command}\n{line[2:].rstrip()}", number + 1
        else:
            expected += line
    if command:
        yield Claim(start, command, expected, "")


def _is_run(command: str) -> bool:
    return not command.startswith(NOT_RUN) and all(
        shutil.which(program) or not re.search(rf"\b{program}\b", command) for program in MAY_LACK
    )


def _run(command: Sequence[str], folder: Path) -> str:
    """What a command prints on both streams, in the environment of a plain pipe."""
    left_out = ("COLUMNS", "LINES", "PYTHONPATH", "PYTHONWARNINGS", "WHYGRAD_DEBUG")
    environment = {key: value for key, value in os.environ.items() if key not in left_out and "PYTEST" not in key}
    environment |= {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONIOENCODING": "utf-8",
    }
    done = subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    return done.stdout.decode("utf-8", "backslashreplace")


# --- Python ---------------------------------------------------------------------------------------------


def _python(path: Path, found: Sequence[Block], folder: Path) -> Iterator[Claim]:
    """The output of each Python block; where none is shown, any is right, but an exception is not."""
    ours = [index for index, block in enumerate(found) if block.language == "python" and not block.title]
    names = [f"{path.stem}-{number}.py" for number in range(1, len(ours) + 1)]
    for name, index in zip(names, ours, strict=True):
        (folder / name).write_text(found[index].text, encoding="utf-8")
    printed = _run([sys.executable, "-c", DRIVER, *names], folder).split(MARK) if ours else []
    for position, index in enumerate(ours):
        block, following = found[index], found[index + 1] if index + 1 < len(found) else None
        about = f"Python at line {block.line}"
        output = printed[position] if position < len(printed) else "it did not run"
        if position >= len(printed) - 1:  # the last part is what was printed after the last block, or an exception
            yield Claim(block.line, about, "", output, is_fact=False)
        elif following is not None and following.language == "output":
            yield Claim(following.line, about, following.text, output)


# --- ledgers --------------------------------------------------------------------------------------------


def _ledger(block: Block, ledger: Path) -> Iterator[Claim]:
    """Each line of the block is one of the ledger's; for one that is not, the most similar of its kind is told."""
    lines = ledger.read_text(encoding="utf-8").splitlines() if ledger.exists() else []
    for number, line in enumerate(block.text.splitlines(), block.line):
        pattern = _pattern(line)
        if any(pattern.fullmatch(other) for other in lines):
            continue
        kind = re.search(r'"event":"[^"]*"', line)
        alike = [other.replace(str(ledger.parent), ANY) for other in lines if kind is not None and kind[0] in other]
        nearest = max(alike, key=partial(_in_common, line), default="no line of this kind")
        yield Claim(number, f"a line of {ledger.name}", f"{line}\n", f"{nearest}\n", is_fact=bool(alike))


def _in_common(line: str, other: str) -> int:
    """With how many characters both begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(line, other, strict=False)))


def kinds_of(path: Path) -> set[str]:
    """The kinds of events that a document shows a line of."""
    found = set()
    for block in blocks(path):
        if block.language == "json" and block.title:
            found |= {match[1] for match in re.finditer(r'"event":"([^"]*)"', block.text)}
    return found


# --- comparing, and writing back ------------------------------------------------------------------------


@cache
def _pattern(line: str) -> re.Pattern[str]:
    return re.compile(".*?".join(map(re.escape, line.rstrip().split(ANY))))


def matches(expected: str, found: str) -> bool:
    """Whether `found` is what `expected` describes.

    >>> matches("a ... c\\n...\\nd\\n", "a b c\\nx\\ny\\nd\\n"), matches("a\\n", "a b\\n")
    (True, False)
    """
    return _fitted(expected, found, dear=0)[0] == 0


def renewed(expected: str, found: str) -> str:
    """`found`, with what `expected` leaves open left open still: up to `OPEN` lines by one line of dots."""
    return "".join(f"{line}\n" for line in _fitted(expected, found, dear=3)[1])


def _fitted(expected: str, found: str, dear: int) -> tuple[int, tuple[str, ...]]:
    """What it costs to make `expected` describe `found`, and the lines that then do.

    A line that has to go or to come costs 1; each line that dots stand for beyond the first few costs `dear`.
    """
    lines = [line.rstrip() for line in found.rstrip("\n").splitlines()]
    wanted: list[str] = []
    for want in expected.rstrip("\n").splitlines():
        wanted += [MAYBE] * OPEN + [ANY] if want.strip() == ANY else [want]
    # best[j]: for the lines wanted so far, what it costs to describe the first j lines found, and by what
    best: list[tuple[int, tuple[str, ...]]] = [(j, tuple(lines[:j])) for j in range(len(lines) + 1)]
    for want in wanted:
        row: list[tuple[int, tuple[str, ...]]] = []
        for j in range(len(lines) + 1):
            skipped, (come, text) = best[j], row[j - 1] if j else (0, ())
            if want == MAYBE:
                ways = [skipped, best[j - 1]] if j else [skipped]
            elif want == ANY:
                ways = [(skipped[0], (*skipped[1], want))]
                if j:
                    ways.append((come + dear, text))
            else:
                ways = [(skipped[0] + 1, skipped[1])]
                if j:
                    ways.append((come + 1, (*text, lines[j - 1])))
                    if _pattern(want).fullmatch(lines[j - 1]):
                        ways.append((best[j - 1][0], (*best[j - 1][1], want)))
            row.append(min(ways, key=lambda way: way[0]))
        best = row
    return best[-1]


def write_back(path: Path, failed: Sequence[Claim]) -> None:
    """Put what was found into the document, in place of what was claimed."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    facts = [claim for claim in failed if claim.is_fact]
    for claim in sorted(facts, key=lambda claim: claim.line, reverse=True):
        start = claim.line - 1
        lines[start : start + claim.text.count("\n")] = [renewed(claim.text, claim.found)]
    path.write_text("".join(lines), encoding="utf-8")
