"""`whygrad show LEDGER`: report a kept ledger again, in any form."""

from __future__ import annotations

import sys

import click

from whygrad.cli.options import ReportOptions, report_options

HELP = """Report a kept ledger again, in any form.

\b
  whygrad run -o run.jsonl train.py       keep the evidence of a run
  whygrad show run.jsonl                  report it in the terminal
  whygrad show -v run.jsonl | less        all of it
  whygrad show run.jsonl --html run.html  a page with the source beside it
  whygrad show run.jsonl --json -         a summary for machines

LEDGER may be one that a killed program left behind: what it wrote is reported.
"""


@click.command(help=HELP)
@click.argument("ledger", type=click.Path())
@report_options
def show(ledger: str, report: ReportOptions) -> int | None:
    from whygrad.cli.emit import emit
    from whygrad.ledger import read

    report.check(ledger)
    return emit(read(ledger), report, sys.stdout)
