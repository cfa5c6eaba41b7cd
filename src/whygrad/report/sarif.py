"""The findings as SARIF 2.1.0, which code hosts show beside the lines of a change.

Source: OASIS, Static Analysis Results Interchange Format Version 2.1.0.
"""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import quote

import msgspec

from whygrad import __version__
from whygrad.rules.diagnose import Diagnosis
from whygrad.rules.finding import Finding, Place, Severity
from whygrad.rules.registry import find

LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def render(diagnosis: Diagnosis, folder: str) -> str:
    """One SARIF log with one run; paths below `folder` are written relative to it."""
    codes = sorted({one.code for one in diagnosis.findings})
    log = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "whygrad",
                        "version": __version__,
                        "informationUri": "https://whygrad.readthedocs.io",
                        "rules": [_rule(code) for code in codes],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [_result(one, codes, folder) for one in diagnosis.findings],
                "invocations": [
                    {
                        "executionSuccessful": True,
                        "toolExecutionNotifications": [
                            {"level": "warning", "message": {"text": sentence}} for sentence in diagnosis.failed
                        ],
                    }
                ],
            }
        ],
    }
    return msgspec.json.format(msgspec.json.encode(log), indent=2).decode() + "\n"


def _rule(code: str) -> dict[str, Any]:
    rule = find(code)
    if rule is None:
        return {"id": code}
    return {
        "id": code,
        "name": "".join(part.capitalize() for part in rule.slug.split("-")),
        "shortDescription": {"text": rule.title()},
        "fullDescription": {"text": f"{rule.title()}."},
        "help": {"text": rule.text(), "markdown": rule.text()},
        "defaultConfiguration": {"level": LEVELS[rule.severity]},
    }


def _result(finding: Finding, codes: list[str], folder: str) -> dict[str, Any]:
    text = " ".join((f"{finding.title}.", *finding.happened, finding.why, f"Fix: {finding.fix}"))
    related = [one for one in finding.evidence if one.place is not None and one.place.path]
    return {
        "ruleId": finding.code,
        "ruleIndex": codes.index(finding.code),
        "level": LEVELS[finding.severity],
        "message": {"text": text},
        "locations": [_location(finding.place, folder)],
        "relatedLocations": [
            {**_location(one.place, folder), "message": {"text": one.text}} for one in related if one.place is not None
        ],
    }


def _location(place: Place, folder: str) -> dict[str, Any]:
    path = os.path.relpath(place.path, folder) if os.path.isabs(place.path) else place.path
    uri = quote((place.path if path.startswith("..") else path).replace(os.sep, "/"))
    return {
        "physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": max(place.line, 1)}},
    }
