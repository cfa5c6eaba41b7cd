"""What a problem is, once it is read: frozen values, with the line of the file that each part stands on."""

from __future__ import annotations

from enum import Enum

import msgspec


class Kind(Enum):
    """What is asked, and how an answer is settled."""

    PREDICT = "predict"
    CHOICE = "choice"
    SETTING = "setting"
    DEBUG = "debug"
    CONCEPT = "concept"
    LINE = "line"
    WHAT_IF = "what-if"
    CODE = "code"
    EXPLAIN = "explain"


class Level(Enum):
    INTERMEDIATE = "intermediate"
    ADVANCED = "advanced"
    EXPERT = "expert"


class Engine(Enum):
    PYTORCH = "pytorch"
    EMBEDDED = "embedded"


class Front(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The front matter of a problem's file.

    `ask` is the expression whose value is to be predicted (where there is none, what the program prints is).
    `check` is the property that the right option has: `{option}` stands for the option's code. `symptom` is what a
    debug problem observes. `torch` are the versions that it is true for, as pip writes them. `mutants: given` tests
    the checks by the wrong solutions that the file names, and by no others.
    """

    id: str
    title: str
    kind: Kind
    level: Level
    topics: tuple[str, ...]
    engines: tuple[Engine, ...] = (Engine.PYTORCH, Engine.EMBEDDED)
    torch: str = ""
    ask: str = ""
    check: str = ""
    symptom: str = ""
    mutants: str = "generated"
    source: str = ""


class Code(msgspec.Struct, frozen=True):
    """Python of a problem. `line` is that of the file on which it begins."""

    text: str
    line: int


class Edit(msgspec.Struct, frozen=True):
    """Lines to take out, which stand together in the code, and those that take their place."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    line: int


class Option(msgspec.Struct, frozen=True):
    """One answer that is offered. `value` is its code: what its first code span holds, or its text.

    `check` and `fix` settle it where the problem as a whole does not say how; `code` is what it puts in the blank.
    """

    letter: str
    text: str
    line: int
    keyed: bool
    value: str
    feedback: str = ""
    check: str = ""
    fix: Edit | None = None
    code: str = ""


class Note(msgspec.Struct, frozen=True):
    """Text of the file: a hint, a follow-up, a point of a checklist, the explanation."""

    text: str
    line: int


class Problem(msgspec.Struct, frozen=True):
    """One problem. `question` is its prose, `answer` what has to be typed where no options are given."""

    path: str
    front: Front
    question: str
    code: Code | None
    options: tuple[Option, ...] = ()
    answer: Note | None = None
    edit: Edit | None = None
    hints: tuple[Note, ...] = ()
    explanation: Note | None = None
    follow_ups: tuple[Note, ...] = ()
    solution: Code | None = None
    checks: tuple[Code, ...] = ()
    mutants: tuple[Code, ...] = ()
    checklist: tuple[Note, ...] = ()
    files: dict[str, str] = {}
    line: int = 1

    @property
    def key(self) -> Option | None:
        """The option that is said to be right, if exactly one is."""
        keyed = [option for option in self.options if option.keyed]
        return keyed[0] if len(keyed) == 1 else None


BLANK = "____"
"""Stands in a problem's code for what an option puts there; a valid name, so that the code can be read and coloured."""
