"""The documents are true: their commands print what they say, their programs run, their links lead somewhere.

`pytest tests/docs --update-golden` writes what is printed now into the documents; look at the difference.
"""

from __future__ import annotations

import difflib
import re
import shutil
import sys
from pathlib import Path

import pytest
from documents import ROOT, Claim, claims, documents, kinds_of, matches, renewed, write_back

from whygrad.ledger.events import AnyEvent

LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.skipif(shutil.which("bash") is None, reason="the commands are written for bash")
@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 knows which statement runs, not which expression")
@pytest.mark.parametrize("path", documents(), ids=name)
def test_what_it_says_is_what_happens(path: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    failed = [claim for claim in claims(path, tmp_path) if not claim.holds]
    if failed and request.config.getoption("--update-golden"):
        write_back(path, failed)
        pytest.fail(f"{name(path)} was updated; look at the difference", pytrace=False)
    if failed:
        pytest.fail("\n\n".join(difference(path, claim) for claim in failed), pytrace=False)


def difference(path: Path, claim: Claim) -> str:
    """What is claimed and what is printed, where they differ."""
    told = claim.text.splitlines()
    found = renewed(claim.text, claim.found).splitlines()
    lines = difflib.unified_diff(told, found, "in the document", "in fact", lineterm="", n=2)
    return "\n".join([f"{name(path)}:{claim.line}: {claim.about}", *lines])


@pytest.mark.parametrize("path", documents(), ids=name)
def test_its_links_lead_somewhere(path: Path) -> None:
    broken = []
    for target, anchor in LINK.findall(path.read_text(encoding="utf-8")):
        file = path if not target else (path.parent / target)
        if not file.exists():
            broken.append(f"{target}: no such file")
        elif anchor and anchor not in headings(file):
            broken.append(f"{target}#{anchor}: no such heading")
    assert broken == []


def headings(path: Path) -> set[str]:
    """The anchors that code hosts give the headings of a document."""
    titles = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_kind_of_event_is_shown() -> None:
    kinds = {str(kind.__struct_config__.tag) for kind in AnyEvent.__args__}
    assert kinds - kinds_of(ROOT / "docs" / "ledger.md") == set()


@pytest.mark.parametrize(
    ("expected", "found", "holds"),
    [
        ("a\n", "a\n", True),
        ("a\n", "b\n", False),
        ("a ... c\n", "a b c\n", True),
        ("a ... c\n", "a b\n", False),
        ("...\nb\n", "x\ny\nb\n", True),
        ("a\n...\n", "a\n", True),
        ("a\n...\nb\n", "a\nx\n", False),
        ("", "a\n", False),
        ("a\n", "", False),
    ],
)
def test_dots_stand_for_anything(expected: str, found: str, holds: bool) -> None:
    assert matches(expected, found) is holds


def test_an_update_keeps_what_was_left_open() -> None:
    assert renewed("torch ...\n...\nold 1\nend\n", "torch 2.13\nx\ny\nnew 1\nend\n") == "torch ...\n...\nend\n"
    assert renewed("torch ...\nold 1\nend\n", "torch 2.13\nnew 1\nend\n") == "torch ...\nnew 1\nend\n"


def test_the_files_that_it_names_are_there() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w./]+/|[\w./]+\.py)`", text)) - {"mode.py", "lab.py"}
    assert named - {name for name in named if (ROOT / "src" / "whygrad" / name).exists()} == set()
