"""The published JSON Schemas, made from the types: docs/schema holds what `documents` gives."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from whygrad.ledger import SCHEMA, events
from whygrad.report import summary

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def documents() -> dict[str, str]:
    """The text of each published schema, by the name of its file."""
    return {name: json.dumps(made(), indent=2) + "\n" for name, made in (("run.json", run), ("ledger.json", ledger))}


def run() -> dict[str, Any]:
    """The schema of what `whygrad run --json` writes."""
    title = f"whygrad run --json, schema {summary.SCHEMA}"
    return {"$schema": DIALECT, "title": title} | msgspec.json.schema(summary.Summary)


def ledger() -> dict[str, Any]:
    """The schema of one line of a ledger: the first is a header, every other an event."""
    (header, event), components = msgspec.json.schema_components(
        [events.Header, events.AnyEvent], ref_template="#/$defs/{name}"
    )
    return {
        "$schema": DIALECT,
        "title": f"A line of a whygrad ledger, schema {SCHEMA}",
        "description": "JSON Lines. The first line is a Header, every other line an event; a last line may be torn.",
        "anyOf": [header, event],
        "$defs": components,
    }
