"""A rule's documentation page and the table of all rules, as Markdown: made from the rules, never by hand."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from whygrad.rules.rule import HERE, Rule


def page(rule: Rule) -> str:
    """What happens, why, how to put it right; examples; when it is meant; the words that lead here."""
    parts = [
        f"# {rule.code} {rule.slug}",
        f"**{rule.title()}.** ({rule.severity.value})",
        rule.text(),
        *(_example("Raises it", code) for code in rule.wrong),
        *(_example("Raises nothing", code) for code in rule.right),
    ]
    if rule.intended:
        parts.append(f"## Intended\n\nIt is meant if {rule.intended.rstrip('.')}.")
    parts.append(
        f"## Silence it\n\nFor a line: `# whygrad: ignore[{rule.code}] the reason`. For a project: "
        f'`ignore = ["{rule.code}"]` under `[tool.whygrad]` in `pyproject.toml`.'
    )
    if rule.search:
        parts.append(f"*Also known as: {'; '.join(rule.search)}.*")
    return "\n\n".join(parts) + "\n"


def table(rules: Iterable[Rule], link: str = "") -> str:
    """One row a rule; `link` makes its code a link, with `{slug}` and `{code}` filled in."""
    rows = ["| code | rule | severity | what it finds |", "| --- | --- | --- | --- |"]
    for rule in rules:
        code = f"[{rule.code}]({link.format(slug=rule.slug, code=rule.code)})" if link else rule.code
        rows.append(f"| {code} | {rule.slug} | {rule.severity.value} | {rule.title()} |")
    return "\n".join(rows) + "\n"


def _example(title: str, code: str) -> str:
    text = textwrap.dedent(code).strip("\n").replace(HERE, "# <- this line")
    return f"## {title}\n\n```python\n{text}\n```"
