"""`whygrad rule WG101`: what a rule finds, why it matters, and how to put it right."""

from __future__ import annotations

import difflib

import click

from whygrad.errors import BadInput

HELP = """Explain a rule: what goes wrong, why, how to put it right, with programs to run.

\b
  whygrad rule WG101                 the page of a rule
  whygrad rule gradient-not-reset    by its name
  whygrad rule --all                 all rules, a line each
  whygrad rule --all zero_grad       those whose page speaks of zero_grad
"""


@click.command(help=HELP)
@click.argument("rule", required=False, metavar="[RULE]")
@click.option("--all", "everything", is_flag=True, help="List the rules; with a word, those that speak of it.")
def rule(rule: str | None, everything: bool) -> None:
    from whygrad.rules.page import page
    from whygrad.rules.registry import all_rules, find

    if everything or rule is None:
        known, failed = all_rules()
        word = (rule or "").lower()
        chosen = [one for one in known if word in page(one).lower()]
        if not chosen:
            raise BadInput(f"no rule speaks of {rule!r}; `whygrad rule --all` lists them.")
        widest = max(len(one.slug) for one in chosen)
        for one in chosen:
            click.echo(f"{one.code}  {one.severity.value:<7}  {one.slug:<{widest}}  {one.title()}")
        for sentence in failed:
            click.echo(f"whygrad: {sentence}", err=True)
        return
    found = find(rule)
    if found is None:
        names = [name for one in all_rules()[0] for name in (one.code, one.slug)]
        near = difflib.get_close_matches(rule, names, 1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise BadInput(f"there is no rule {rule!r}.{hint} `whygrad rule --all` lists them.")
    click.echo(page(found), nl=False)
