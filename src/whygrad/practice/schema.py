"""The published JSON Schemas of a problem and of what `whygrad check --json` writes, made from the types."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from whygrad.practice.problem import Front, Problem

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def documents() -> dict[str, str]:
    """The text of each published schema, by the name of its file."""
    return {"problem.json": json.dumps(problem(), indent=2) + "\n"}


def problem() -> dict[str, Any]:
    """The schema of a problem: its front matter as the file has it, and the whole as it is once read."""
    (front, whole), components = msgspec.json.schema_components([Front, Problem], ref_template="#/$defs/{name}")
    return {
        "$schema": DIALECT,
        "title": "A whygrad problem",
        "description": "The front matter of a problem's file, or the problem as it is once the file is read.",
        "anyOf": [front, whole],
        "$defs": components,
    }
