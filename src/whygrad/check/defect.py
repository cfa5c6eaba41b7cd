"""What a check finds: defects, each under one of the names below, and what was run or left out."""

from __future__ import annotations

from enum import Enum

import msgspec


class Name(Enum):
    """The kinds of defects."""

    WRONG_KEY = "wrong-key"
    NO_RIGHT_OPTION = "no-right-option"
    TWO_RIGHT_OPTIONS = "two-right-options"
    UNSTABLE = "unstable"
    DRIFT = "drift"
    DOES_NOT_RUN = "does-not-run"
    NOT_SELF_CONTAINED = "not-self-contained"
    PLACEHOLDER = "placeholder"
    EXPLANATION_CONTRADICTS_RUN = "explanation-contradicts-run"
    QUESTION_PRESUPPOSES_ERROR = "question-presupposes-error"
    WEAK_TEST = "weak-test"
    ALREADY_SOLVED = "already-solved"
    HINT_GIVES_KEY_AWAY = "hint-gives-key-away"
    SKIPPED_BLOCK = "skipped-block"
    WRONG_OUTPUT = "wrong-output"


MEANING = {
    Name.WRONG_KEY: "The answer that is said to be right is not what a run shows; another option is.",
    Name.NO_RIGHT_OPTION: "What a run shows is not among the options.",
    Name.TWO_RIGHT_OPTIONS: "More than one option is what a run shows.",
    Name.UNSTABLE: "The answer depends on chance: on the seed, the number of threads or the order of hashes.",
    Name.DRIFT: "The answer depends on the engine or its version.",
    Name.DOES_NOT_RUN: "The code, or a check of it, raises an error that nobody speaks of.",
    Name.NOT_SELF_CONTAINED: "The code needs something that is not shown: a name, a module, a file.",
    Name.PLACEHOLDER: "Something was left to be filled in.",
    Name.EXPLANATION_CONTRADICTS_RUN: "The explanation states what a run contradicts.",
    Name.QUESTION_PRESUPPOSES_ERROR: "The question rests on something that does not happen.",
    Name.WEAK_TEST: "A wrong solution passes the checks.",
    Name.ALREADY_SOLVED: "What the learner is given passes the checks as it is.",
    Name.HINT_GIVES_KEY_AWAY: "A hint names the answer.",
    Name.SKIPPED_BLOCK: "A block that looks like Python is not recognised as such, and would never be run.",
    Name.WRONG_OUTPUT: "The output that is shown is not the one that a run gives.",
}


class Defect(msgspec.Struct, frozen=True):
    """One thing that is wrong. `evidence` is what `whygrad why` says of it, where it has something to say."""

    name: Name
    path: str
    line: int
    published: str
    observed: str
    evidence: str = ""


class Skipped(msgspec.Struct, frozen=True):
    """Something that was found and not run, and why."""

    path: str
    line: int
    why: str


class Checked(msgspec.Struct, frozen=True):
    """What came of a check. `found` counts problems and blocks of Python; each was run or skipped."""

    found: int = 0
    ran: int = 0
    skipped: tuple[Skipped, ...] = ()
    defects: tuple[Defect, ...] = ()
    paths: tuple[str, ...] = ()

    def __add__(self, other: Checked) -> Checked:
        return Checked(
            self.found + other.found,
            self.ran + other.ran,
            self.skipped + other.skipped,
            self.defects + other.defects,
            tuple(dict.fromkeys(self.paths + other.paths)),
        )
