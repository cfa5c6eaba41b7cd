"""What an answer is: one headline, and sentences that each name the events that prove them. No reasoning here."""

from __future__ import annotations

import re
import textwrap
from enum import Enum

import msgspec

from whygrad.ledger.events import TensorId

WIDTH = 100
"""Columns that `str(answer)` may use."""


class Aspect(str, Enum):
    """What is asked about a tensor or a module."""

    VALUE = "value"
    GRAD = "grad"
    REQUIRES_GRAD = "requires_grad"
    GRAD_FN = "grad_fn"
    IS_LEAF = "is_leaf"
    TRAINING = "training"


class Target(msgspec.Struct, frozen=True):
    """A tensor of the ledger and what is asked about it, for a caller that knows the tensor's id."""

    tensor: TensorId
    aspect: Aspect = Aspect.GRAD


class Sentence(msgspec.Struct, frozen=True, omit_defaults=True):
    """One statement and its evidence: the `seq` of the events that it rests on."""

    text: str
    events: tuple[int, ...] = ()


class Moment(msgspec.Struct, frozen=True, omit_defaults=True):
    """The moment that is asked about: after event `seq`. `text` says it (`line 13`, `the end of the program`).

    For a line, `began` and `ended` are the events around the call of its function (0: not known).
    """

    seq: int
    text: str
    path: str = ""
    line: int = 0
    function: str = "<module>"
    began: int = 0
    ended: int = 0


class Answer(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Why something is as it is.

    `reason` is a stable word for machines (`accumulated`, `reset`, `cut`, `second backward`); `value` is what
    was asked about, as printed.

    >>> Answer(about="w.grad", reason="no backward", moment=Moment(seq=3, text="line 2"),
    ...        headline=Sentence("w.grad is None at line 2: no backward had run."), value="None").lines()
    ['w.grad is None at line 2: no backward had run.']
    """

    about: str
    reason: str
    moment: Moment
    headline: Sentence
    sentences: tuple[Sentence, ...] = ()
    value: str = ""

    def lines(self, width: int = WIDTH) -> list[str]:
        """The answer for a terminal: the headline, then one indented paragraph a sentence."""
        lines = _wrapped(self.headline.text, width)
        for sentence in self.sentences:
            lines += _wrapped(sentence.text, width, "  - ", "    ")
        return lines

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def json(self) -> str:
        """The answer for a machine, as one JSON object."""
        return msgspec.json.encode(self).decode()


TOGETHER = 38
"""Pieces of at most so many characters are kept on one line."""

_TOGETHER = re.compile(r"`[^`]*`|\[[^\[\]`]{1,36}\]|\(line \d+\)|\bline \d+|(?:backward|autograd\.grad) #\d+")
"""What is not broken over two lines: short code, values, places."""


def _wrapped(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    kept = _TOGETHER.sub(lambda match: match[0].replace(" ", "\0") if len(match[0]) <= TOGETHER else match[0], text)
    lines = textwrap.wrap(
        kept,
        max(width, 30),
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace("\0", " ") for line in lines]
