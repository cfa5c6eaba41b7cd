"""Plain text: quizzes with options A to D and a solution in prose, and pages with code that nothing marks as such."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import msgspec

from whygrad.check.block import Block, Page
from whygrad.practice import published
from whygrad.practice.problem import Code, Engine, Front, Kind, Level, Note, Option, Problem

OPTION = re.compile(r"^\s*\(?([A-F])[.):]?\s+(\S.*)$")
CODE = re.compile(r"^(?:import|from)\s+\w+")
KINDS = ((r"predict|output", Kind.PREDICT), (r"debug", Kind.DEBUG), (r"choice", Kind.CHOICE))
HINT = re.compile(r"^\W*hint\b", re.IGNORECASE)

PROPERTIES = (
    (
        re.compile(r"\.grad\b.*(?:populated|filled|set)|(?:has|have|gets?) (?:a )?(?:\.grad|gradient)", re.I),
        "{}.grad is not None",
    ),
    (re.compile(r"require(?:s|d)?_?\s?grad", re.I), "{}.requires_grad"),
    (re.compile(r"\bleaf\b", re.I), "{}.is_leaf"),
)
"""What a question about several tensors asks of each."""


class Unsettled(msgspec.Struct, frozen=True):
    """A question that no run can settle as it stands."""

    line: int
    why: str


class _Asked(msgspec.Struct):
    """One question of a page, as it was found."""

    title: str
    title_line: int
    code: Code
    options: list[tuple[str, str, int]]
    hint: str
    explanation: str
    explanation_line: int
    before: str


def page(path: str, text: str) -> Page:
    """The code of a page, where it is no quiz: from an import to the last line that still is Python."""
    lines = text.splitlines()
    blocks = []
    index = 0
    while index < len(lines):
        if CODE.match(lines[index]):
            end = _end_of_code(lines, index)
            if end > index:
                blocks.append(Block("\n".join(lines[index:end]) + "\n", index + 1, fresh=True))
                index = end
                continue
        index += 1
    return Page(path, tuple(blocks))


def problems(path: str, text: str) -> list[Problem]:
    """The questions of a page that a run can settle."""
    return [problem for asked in _questions(text) if (problem := _problem(path, asked)) is not None]


def unsettled(path: str, text: str) -> list[Unsettled]:
    """The questions that none can, and why."""
    return [
        Unsettled(asked.title_line, f"{asked.title!r}: no option names a value, an error or a property to evaluate")
        for asked in _questions(text)
        if _problem(path, asked) is None
    ]


def _end_of_code(lines: list[str], start: int) -> int:
    """The line after the last one with which the code from `start` on is still Python."""
    end = start
    for stop in range(start + 1, len(lines) + 1):
        if stop - end > 40:
            break
        try:
            ast.parse("\n".join(lines[start:stop]))
        except (SyntaxError, ValueError):
            continue
        if lines[stop - 1].strip() and not re.match(r"^[A-F]\s*$", lines[stop - 1]):
            end = stop
    return end


def _questions(text: str) -> Iterator[_Asked]:
    """Each piece of code that is followed by options."""
    lines = text.splitlines()
    index = 0
    previous = 0
    while index < len(lines):
        if not CODE.match(lines[index]):
            index += 1
            continue
        end = _end_of_code(lines, index)
        options, after = _options(lines, end)
        if len(options) < 2:
            index = max(end, index + 1)
            continue
        before = [
            (number, line.strip()) for number, line in enumerate(lines[previous:index], previous + 1) if line.strip()
        ]
        title_line, title = next(
            ((n, t) for n, t in before if t.endswith("?")), before[0] if before else (index + 1, "")
        )
        hint, explanation, where, previous = _rest(lines, after)
        code = Code("\n".join(lines[index:end]) + "\n", index + 1)
        yield _Asked(title, title_line, code, options, hint, explanation, where, " ".join(line for _, line in before))
        index = previous


def _options(lines: list[str], start: int) -> tuple[list[tuple[str, str, int]], int]:
    found: list[tuple[str, str, int]] = []
    index = start
    while index < len(lines):
        line = lines[index]
        match = OPTION.match(line)
        if match is not None and match[1] == chr(ord("A") + len(found)):
            found.append((match[1], match[2].strip(), index + 1))
        elif (line.strip() and found) or (line.strip() and index - start > 3):
            break
        index += 1
    return found, index


def _rest(lines: list[str], start: int) -> tuple[str, str, int, int]:
    """Hint and explanation: the paragraphs up to the next question."""
    paragraphs: list[tuple[int, str]] = []
    index = start
    while index < len(lines):
        line = lines[index].strip()
        if (
            CODE.match(line)
            or line.startswith("❓")
            or re.match(r"^\W{1,3}\s(?:Predict|Model|Hyper|Debug|Concept)", line)
        ):
            break
        if line:
            paragraphs.append((index + 1, line))
        index += 1
    is_hint = bool(paragraphs) and HINT.match(paragraphs[0][1])
    hint = paragraphs[1][1] if is_hint and len(paragraphs) > 1 else ""
    rest = paragraphs[2:] if is_hint else paragraphs
    return hint, " ".join(line for _, line in rest), rest[0][0] if rest else start, index


def _problem(path: str, asked: _Asked) -> Problem | None:
    """The question as a problem: its key is the option that its explanation ends with."""
    key = _key(asked)
    kind = _kind(asked)
    texts = [text for _, text, _ in asked.options]
    values = [_value(text) for text in texts]
    check = ""
    symptom = ""
    names = all(re.fullmatch(r"[A-Za-z_][\w.]*", text) and text not in ("None", "True", "False") for text in texts)
    if names:
        check = next((made for pattern, made in PROPERTIES if pattern.search(f"{asked.before}")), "")
        if not check:
            return None
        kind, check = Kind.CHOICE, check.replace("{}", "{option}")
    elif any(not isinstance(published.published(value), published.Text) for value in values):
        kind = Kind.PREDICT
    else:
        named = re.search(r"\b(\w+\.grad) (?:is )?None", asked.before)
        if kind is not Kind.DEBUG or named is None:
            return None
        symptom = f"{named[1]} is None"
    options = tuple(
        Option(letter, text, line, letter == key, value, check="" if kind is not Kind.DEBUG else "True")
        for (letter, text, line), value in zip(asked.options, values, strict=True)
    )
    front = Front(
        re.sub(r"[^a-z0-9]+", "-", asked.title.lower()).strip("-") or "question",
        asked.title, kind, Level.INTERMEDIATE, ("quiz",), (Engine.PYTORCH, Engine.EMBEDDED),
        check=check, symptom=symptom,
    )  # fmt: skip
    explanation = Note(asked.explanation, asked.explanation_line) if asked.explanation else None
    hints = (Note(asked.hint, asked.explanation_line - 1),) if asked.hint else ()
    return Problem(
        path, front, asked.before, asked.code, options, hints=hints, explanation=explanation, line=asked.title_line
    )


def _kind(asked: _Asked) -> Kind:
    head = asked.before[: asked.before.find(asked.title)] if asked.title else asked.before
    return next((kind for pattern, kind in KINDS if re.search(pattern, head, re.IGNORECASE)), Kind.CONCEPT)


def _value(text: str) -> str:
    """What an option's words come to: a number in brackets, an error, zero."""
    if not isinstance(published.published(text), published.Text):
        return text
    inside = re.search(r"\(([-+]?\d+(?:\.\d+)?)\)\s*$", text)
    if inside is not None:
        return inside[1]
    if published.ANY_ERROR.search(text):
        return "an error"
    if re.search(r"\bzero\b", text, re.IGNORECASE):
        return "0.0"
    return re.sub(r"\s+(?:scalar|value)$", "", text)


def _key(asked: _Asked) -> str:
    """The letter that the explanation speaks for: named outright, else the option whose words it uses most."""
    named = re.search(r"\b(?:answer|correct|key)\b[^.]{0,20}?\b([A-F])\b", asked.explanation)
    if named is not None:
        return named[1]
    said = {_plainly(word) for word in published.words(asked.explanation)}

    def score(text: str) -> tuple[float, int]:
        words = {_plainly(word) for word in published.words(text) if word.isalnum() or word[:1].isdigit()}
        numbers = {word for word in words if word[:1].isdigit()}
        if numbers and not numbers <= said:
            return (-1.0, 0)
        bonus = 0.5 if numbers else 0.0
        return (len(words & said) / max(len(words), 1) + bonus, len(words))

    return max(asked.options, key=lambda option: score(option[1]))[0]


def _plainly(word: str) -> str:
    try:
        return f"{float(word):g}"
    except ValueError:
        return word.lower()
