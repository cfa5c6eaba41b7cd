"""Reads a problem from its Markdown file. What cannot be read is said with its line and what to write instead."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from whygrad.errors import BadInput
from whygrad.execute.markdown import is_python
from whygrad.practice.problem import Code, Edit, Front, Kind, Note, Option, Problem

if TYPE_CHECKING:
    from markdown_it.token import Token

FRONT = re.compile(r"\A---\r?\n(.*?)^---[ \t]*\r?\n", re.DOTALL | re.MULTILINE)
TASK = re.compile(r"^\s*[-*+]\s+\[([ xX])\]\s+(.*)$")
COMMENT = re.compile(r"<!--\s*([\w-]+):(.*?)-->", re.DOTALL)
SPAN = re.compile(r"(`+)(.+?)\1")
ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
SETTLED_BY_CHECK = (Kind.CHOICE, Kind.CONCEPT, Kind.LINE)


def is_problem(text: str) -> bool:
    """Whether a Markdown file is a problem: its front matter names a kind."""
    match = FRONT.match(text)
    return match is not None and re.search(r"^kind:", match[1], re.MULTILINE) is not None


def read(path: str) -> Problem:
    """The problem in a file. Raises BadInput."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise BadInput(f"{path}: is not UTF-8 text.") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}.") from None
    return parse(text, path)


def parse(text: str, path: str = "problem.md") -> Problem:
    """The problem that a text is. Raises BadInput."""
    front, line = _front(text, path)
    problem = _Reader(path, text.splitlines(), line).problem(front)
    _look_over(problem)
    return problem


def _front(text: str, path: str) -> tuple[Front, int]:
    """The front matter, and the number of lines that it takes."""
    match = FRONT.match(text)
    if match is None:
        raise BadInput(f"{path}:1: has no front matter; begin the file with a line ---, `id:`, `title:`, ... and ---.")
    import yaml  # type: ignore[import-untyped]

    try:
        found = yaml.safe_load(match[1])
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = mark.line + 2 if mark is not None else 1
        raise BadInput(f"{path}:{where}: the front matter is not YAML: {getattr(error, 'problem', error)}.") from None
    try:
        front = msgspec.convert(found, Front)
    except msgspec.ValidationError as error:
        raise BadInput(f"{path}:1: front matter: {_plainly(str(error))}.") from None
    return front, match[0].count("\n")


def _plainly(complaint: str) -> str:
    return complaint[0].lower() + complaint[1:].replace(" - at `$.", " at `").rstrip(".")


class _Reader:
    """Takes the parts of one file as they come. Lines are counted from 0 here, and from 1 in what is made."""

    def __init__(self, path: str, lines: list[str], skip: int) -> None:
        self._path = path
        self._lines = lines
        self._skip = skip
        self._section = ""
        self._prose: dict[str, list[str]] = {"": []}
        self._where: dict[str, int] = {}
        self._code: dict[str, list[Code]] = {}
        self._lists: dict[str, list[Note]] = {}
        self._options: list[Option] = []
        self._edit: Edit | None = None
        self._other: list[tuple[int, str]] = []

    def problem(self, front: Front) -> Problem:
        from markdown_it import MarkdownIt

        body = "\n" * self._skip + "\n".join(self._lines[self._skip :])
        tokens = MarkdownIt("commonmark").parse(body)
        for index, token in enumerate(tokens):
            if token.level == 0 and token.map is not None:
                self._take(token, tokens[index + 1 :])
        code = self._code.get("", [])
        if len(code) > 1:
            raise BadInput(f"{self._path}:{code[1].line}: a second code block; a problem's code is one block.")
        if self._other and front.kind is not Kind.EXPLAIN:
            line, info = self._other[0]
            raise BadInput(f"{self._path}:{line}: a block of `{info}` in the question is not run; mark it ```python.")
        answers = self._code.get("answer") or [
            Code(note, self._where["answer"]) for note in self._prose.get("answer", ())
        ]
        files = _files(self._path, code[0].text if code else "")
        return Problem(
            self._path,
            front,
            "\n\n".join(self._prose[""]),
            code[0] if code else None,
            tuple(self._options),
            Note(answers[0].text.strip().strip("`"), answers[0].line) if answers else None,
            self._edit,
            self._notes("hints"),
            self._text("explanation"),
            self._notes("follow-ups"),
            next(iter(self._code.get("solution", ())), None),
            tuple(self._code.get("checks", ())),
            tuple(self._code.get("wrong solutions", ())),
            self._notes("checklist"),
            files,
            self._skip + 1,
        )

    def _take(self, token: Token, following: Sequence[Token]) -> None:
        assert token.map is not None
        start, end = token.map
        raw = "\n".join(self._lines[start:end]).rstrip()
        if token.type == "heading_open":
            title = following[0].content.strip()
            if token.tag != "h1":
                self._section = title.lower()
        elif token.type == "fence":
            self._fence(token, start)
        elif token.type in ("bullet_list_open", "ordered_list_open"):
            self._where.setdefault(self._section, start + 1)
            self._list(following, raw)
        elif token.type in ("paragraph_open", "blockquote_open"):
            self._where.setdefault(self._section, start + 1)
            self._prose.setdefault(self._section, []).append(raw)

    def _fence(self, token: Token, start: int) -> None:
        info = token.info.strip()
        if is_python(info):
            self._code.setdefault(self._section, []).append(Code(token.content, start + 2))
        elif info == "diff":
            self._edit = self._edited(token.content, start + 2)
        elif not self._section and info not in ("text", "output", "console", ""):
            self._other.append((start + 1, info))

    def _edited(self, text: str, line: int) -> Edit:
        old, new = [], []
        for one in text.splitlines():
            if one.startswith("-"):
                old.append(one[1:].strip())
            elif one.startswith("+"):
                new.append(one[1:].removeprefix(" "))
            elif one.strip():
                raise BadInput(f"{self._path}:{line}: each line of an edit begins with - or +, not {one.strip()!r}.")
        if not old:
            raise BadInput(f"{self._path}:{line}: an edit says with - which lines of the code it replaces.")
        return Edit(tuple(old), tuple(new), line)

    def _list(self, following: Sequence[Token], raw: str) -> None:
        items = [token.map for token in _until_end(following) if token.type == "list_item_open" and token.level == 1]
        for bounds in items:
            assert bounds is not None
            lines = self._lines[bounds[0] : bounds[1]]
            task = TASK.match(lines[0])
            if task is not None and self._section == "":
                self._options.append(self._option(task, lines, bounds[0]))
            elif self._section == "":
                self._prose[""].append(raw)
                return
            else:
                first = TASK.sub(r"\2", lines[0]) if task else ITEM.sub("", lines[0])
                text = "\n".join([first, *lines[1:]]).strip()
                self._lists.setdefault(self._section, []).append(Note(text, bounds[0] + 1))

    def _option(self, task: re.Match[str], lines: list[str], start: int) -> Option:
        body = textwrap.dedent("\n".join(lines[1:]))
        comments = dict(_comments(f"{task[2]}\n{body}"))
        unknown = set(comments) - {"check", "fix", "code"}
        if unknown:
            name = sorted(unknown)[0]
            raise BadInput(f"{self._path}:{start + 1}: an option has check:, fix: or code:, not {name}:.")
        first = COMMENT.sub("", task[2]).strip()
        rest = COMMENT.sub("", body)
        block = re.search(r"^```\w*\n(.*?)^```\s*$", rest, re.DOTALL | re.MULTILINE)
        code = comments.get("code", "")
        if block is not None:
            code = block[1].rstrip("\n")
            rest = rest.replace(block[0], "")
        head, _, feedback = f"{first}\n{rest}".partition("\n\n") if not rest.startswith("\n") else (first, "", rest)
        text = " ".join(head.split())
        span = SPAN.search(text)
        fix = comments.get("fix")
        return Option(
            chr(ord("A") + len(self._options)),
            text,
            start + 1,
            task[1] in "xX",
            span[2].strip() if span else text,
            " ".join(feedback.split()),
            comments.get("check", ""),
            self._edited(fix, start + 1) if fix else None,
            code,
        )

    def _notes(self, section: str) -> tuple[Note, ...]:
        return tuple(self._lists.get(section, ()))

    def _text(self, section: str) -> Note | None:
        parts = self._prose.get(section, []) + [note.text for note in self._lists.get(section, ())]
        return Note("\n\n".join(parts), self._where[section]) if parts else None


def _until_end(tokens: Sequence[Token]) -> Sequence[Token]:
    """The tokens of a list that has just begun."""
    for index, token in enumerate(tokens):
        if token.level == 0:
            return tokens[:index]
    return tokens


def _comments(text: str) -> list[tuple[str, str]]:
    return [(name, textwrap.dedent(value.strip("\n")).strip()) for name, value in COMMENT.findall(text)]


def _files(path: str, code: str) -> dict[str, str]:
    """The modules beside the problem that its code imports."""
    found: dict[str, str] = {}
    for name in re.findall(r"^\s*(?:from|import)\s+(\w+)", code, re.MULTILINE):
        beside = os.path.join(os.path.dirname(path), f"{name}.py")
        if os.path.isfile(beside):
            found[f"{name}.py"] = Path(beside).read_text(encoding="utf-8")
    return found


# --- whether it is whole ------------------------------------------------------------------------------


def _look_over(problem: Problem) -> None:
    """Raise BadInput for what no run can settle, and say what is missing."""
    front, path = problem.front, problem.path
    kind = front.kind

    def missing(what: str, line: int = 1) -> BadInput:
        return BadInput(f"{path}:{line}: {what}")

    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", front.id):
        raise missing(f"the id {front.id!r} has other characters than a-z, 0-9 and single hyphens.")
    if not front.topics:
        raise missing("`topics` is empty; name at least one.")
    if kind is Kind.CODE:
        if problem.solution is None or not problem.checks:
            raise missing("a code problem has a section Solution and a section Checks, each with a ```python block.")
        return
    if kind is Kind.EXPLAIN:
        if not problem.checklist:
            raise missing("an explain problem has a section Checklist to judge oneself by.")
        return
    if kind is Kind.PREDICT and problem.answer is not None and not problem.options:
        return
    if len(problem.options) < 2:
        raise missing(f"a {kind.value} problem offers at least two options: lines that begin with - [ ] or - [x].")
    keyed = [option for option in problem.options if option.keyed]
    if len(keyed) != 1:
        where = keyed[1].line if keyed else problem.options[0].line
        raise missing(f"{len(keyed)} options are marked [x]; mark the one that is right.", where)
    if kind is not Kind.CONCEPT and problem.code is None:
        raise missing(f"a {kind.value} problem has a ```python block.")
    if kind is Kind.WHAT_IF and problem.edit is None:
        raise missing("a what-if problem has a ```diff block that says what is edited.")
    if kind is Kind.SETTING and not front.check:
        raise missing("a setting problem has `check:`, an expression that is true where the behaviour is as asked.")
    if kind is Kind.DEBUG and not front.symptom:
        raise missing("a debug problem has `symptom:`, an expression that is true of what is observed.")
    for option in problem.options:
        settled = option.check or option.fix or front.check
        if kind in (*SETTLED_BY_CHECK, Kind.DEBUG) and not settled:
            raise missing(
                f"option {option.letter} has no check; add <!-- check: EXPRESSION --> or `check:` for all.", option.line
            )
