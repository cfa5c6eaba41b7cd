"""What was checked, as JSON, JUnit XML, SARIF and the annotations of GitHub's workflows."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

import msgspec

from whygrad import __version__
from whygrad.check.defect import MEANING, Checked, Defect, Name

SCHEMA = 1
SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


class SkippedBlock(msgspec.Struct, frozen=True):
    """Something that was found and not run, and why."""

    path: str
    line: int
    why: str


class Found(msgspec.Struct, frozen=True, omit_defaults=True):
    """One defect: what was published, and what the run shows."""

    name: str
    path: str
    line: int
    published: str
    observed: str
    evidence: str = ""


class Report(msgspec.Struct, frozen=True):
    """What `whygrad check --json` writes."""

    schema: int
    found: int
    ran: int
    skipped: tuple[SkippedBlock, ...]
    defects: tuple[Found, ...]


def json(checked: Checked) -> str:
    report = Report(
        SCHEMA,
        checked.found,
        checked.ran,
        tuple(SkippedBlock(one.path, one.line, one.why) for one in checked.skipped),
        tuple(
            Found(one.name.value, one.path, one.line, one.published, one.observed, one.evidence)
            for one in checked.defects
        ),
    )
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n"


def junit(checked: Checked) -> str:
    """One test case a file; each defect of it is a failure."""
    by_path: dict[str, list[Defect]] = {path: [] for path in checked.paths}
    for defect in checked.defects:
        by_path.setdefault(defect.path, []).append(defect)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites><testsuite name="whygrad check" tests="{len(by_path)}" '
        f'failures="{sum(1 for defects in by_path.values() if defects)}" errors="0" skipped="0">',
    ]
    for path, defects in by_path.items():
        lines.append(f'<testcase classname="whygrad.check" name={quoteattr(path)} file={quoteattr(path)}>')
        if defects:
            message = ", ".join(sorted({one.name.value for one in defects}))
            text = "\n".join(
                f"{one.path}:{one.line}: {one.name.value}\n  published: {one.published}\n  observed: {one.observed}"
                for one in defects
            )
            lines.append(f"<failure message={quoteattr(message)}>{escape(_printable(text))}</failure>")
        lines.append("</testcase>")
    lines.append("</testsuite></testsuites>")
    return "\n".join(lines) + "\n"


def _printable(text: str) -> str:
    return "".join(sign if sign >= " " or sign in "\n\t" else "�" for sign in text)


def sarif(checked: Checked, folder: str) -> str:
    """A SARIF 2.1.0 log with one run; paths below `folder` are written relative to it."""
    names = sorted({one.name.value for one in checked.defects})
    log: dict[str, Any] = {
        "$schema": SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "whygrad check",
                        "version": __version__,
                        "informationUri": "https://whygrad.readthedocs.io",
                        "rules": [{"id": name, "shortDescription": {"text": MEANING[Name(name)]}} for name in names],
                    }
                },
                "results": [_result(one, names, folder) for one in checked.defects],
            }
        ],
    }
    return msgspec.json.format(msgspec.json.encode(log), indent=2).decode() + "\n"


def _result(defect: Defect, names: list[str], folder: str) -> dict[str, Any]:
    path = os.path.relpath(defect.path, folder) if os.path.isabs(defect.path) else defect.path
    uri = quote((defect.path if path.startswith("..") else path).replace(os.sep, "/"))
    return {
        "ruleId": defect.name.value,
        "ruleIndex": names.index(defect.name.value),
        "level": "error",
        "message": {"text": _sentence(defect)},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": uri},
                    "region": {"startLine": max(defect.line, 1)},
                }
            }
        ],
    }


def _sentence(defect: Defect) -> str:
    said = f"published: {defect.published}; the run shows: {defect.observed}"
    return f"{said}. {defect.evidence}" if defect.evidence else said


def github(checked: Checked) -> str:
    """A workflow command a defect, which puts it beside the line of the change."""
    lines = []
    for one in checked.defects:
        path = _property(one.path)
        text = _sentence(one).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
        lines.append(f"::error file={path},line={one.line},title={one.name.value}::{text}")
    return "".join(f"{line}\n" for line in lines)


def _property(text: str) -> str:
    for sign, code in (("%", "%25"), ("\r", "%0D"), ("\n", "%0A"), (":", "%3A"), (",", "%2C")):
        text = text.replace(sign, code)
    return text
