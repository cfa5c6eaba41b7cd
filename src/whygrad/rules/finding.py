"""What a rule says: the line to blame, what happened in numbers, why, and the change that makes it right."""

from __future__ import annotations

import enum

import msgspec

from whygrad.ledger.events import SiteId


class Severity(enum.Enum):
    """By consequence: an error makes the result wrong, a warning is likely not meant, a note is worth knowing."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    @property
    def rank(self) -> int:
        """Worst first."""
        return list(Severity).index(self)


class Place(msgspec.Struct, frozen=True):
    """A line of the user's code. `where` is how a person says it: `line 6`, or `helpers.py:6`."""

    path: str
    line: int
    code: str = ""
    where: str = ""
    site: SiteId | None = None


class Evidence(msgspec.Struct, frozen=True):
    """An event that a finding rests on, in a sentence: its number in the ledger, its place, what it says."""

    seq: int
    text: str
    place: Place | None = None


class Edit(msgspec.Struct, frozen=True):
    """A change of a source file: the text from (line, column) to (end_line, end_column) becomes `text`.

    Lines count from 1 and columns in characters from 0, as `Site` has them. An edit with two equal ends inserts.
    """

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    text: str


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong.

    `title` says it in one line, without a full stop. `happened` are sentences with the numbers of this run, `why`
    the mechanism in one or two sentences, `fix` what to change. `subjects` are the names (of tensors, modules,
    optimizers) that it is about: of two findings about the same subject, one may explain the other.
    `edits` make the fix, where it is mechanical.
    """

    code: str
    slug: str
    severity: Severity
    place: Place
    title: str
    happened: tuple[str, ...]
    why: str
    fix: str
    evidence: tuple[Evidence, ...]
    intended: str = ""
    subjects: frozenset[str] = frozenset()
    edits: tuple[Edit, ...] = ()
