"""The pages of the rules in the docs are made from the rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from whygrad.rules.page import page, table
from whygrad.rules.registry import find, rules

DOCS = Path(__file__).parent.parent.parent / "docs" / "rules"

HEAD = """# Rules

What `whygrad run` looks for. This page and those of the rules are made from the rules themselves
(`src/whygrad/rules`); `whygrad rule CODE` prints one.

"""


def documents() -> dict[str, str]:
    made = {f"{rule.slug}.md": page(rule) for rule in rules()}
    return {"index.md": HEAD + table(rules(), link="{slug}.md"), **made}


def test_the_published_pages_are_those_of_the_rules(request: pytest.FixtureRequest) -> None:
    made = documents()
    if request.config.getoption("--update-golden"):
        DOCS.mkdir(exist_ok=True)
        for old in DOCS.glob("*.md"):
            old.unlink()
        for name, text in made.items():
            (DOCS / name).write_text(text, encoding="utf-8")
    published = {path.name: path.read_text(encoding="utf-8") for path in DOCS.glob("*.md")}
    assert published == made, "docs/rules is not up to date; run pytest --update-golden"


@pytest.mark.parametrize("spelled", ["WG101", "wg101", "gradient-not-reset"])
def test_a_rule_is_found_by_its_code_or_its_name(spelled: str) -> None:
    rule = find(spelled)
    assert rule is not None
    assert rule.code == "WG101"
