"""`whygrad fix FILE`: the changes that put findings right, each tried in a run of its own before it is shown."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from whygrad.cli.options import WithArguments
from whygrad.errors import BadInput

if TYPE_CHECKING:
    from whygrad.answers.fix import Fix, Fixes
    from whygrad.execute.program import Program
    from whygrad.rules.finding import Finding

HELP = """Change what is wrong, and show by running it that the change does it.

\b
  whygrad fix train.py                   show the changes, write nothing
  whygrad fix train.py -- --epochs 1     with the program's own arguments
  whygrad fix --only WG101 train.py      only what this rule finds
  whygrad fix --apply train.py           write them; git must have the old
  whygrad fix --apply --backup train.py  ... or train.py.orig keeps it
  whygrad fix -m package.train           a module

The program runs once as it is, and once or more with changes: all that it does elsewhere (files that it writes,
requests that it sends) happens each time. A change is shown only if the finding is gone with it and nothing new came.
Exit code 0: nothing to fix, or all is fixed; 1: findings are left; 2: bad input.
"""

FIXED, LEFT = 0, 1

COLOURS = {"+": "green", "-": "red", "@": "cyan"}


@click.command(cls=WithArguments, help=HELP, options_metavar="[OPTIONS]")
@click.argument("name", metavar="FILE")
@click.option("-m", "is_module", is_flag=True, help="FILE is the name of a module.")
@click.option("--only", metavar="RULE", multiple=True, help="Try this rule alone: a code, its start, a name.")
@click.option("--apply", "is_applied", is_flag=True, help="Write the changes that did it.")
@click.option("--backup", is_flag=True, help="With --apply: keep the old text beside the file, as FILE.orig.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--timeout", metavar="SECONDS", type=click.FloatRange(min=1), help="What the first run may take.")
@click.option(
    "--engine", type=click.Choice(["auto", "pytorch", "embedded"]), default="auto", help="As for `whygrad run`."
)
@click.pass_context
def fix(
    ctx: click.Context,
    name: str,
    is_module: bool,
    only: tuple[str, ...],
    is_applied: bool,
    backup: bool,
    as_json: bool,
    timeout: float | None,
    engine: str,
) -> int:
    from whygrad.answers.fix import Guard, check_writable, try_fixes, write
    from whygrad.rules.settings import settings_near

    if backup and not is_applied:
        raise click.UsageError("--backup goes with --apply, which writes.")
    program = _program(name, ctx.meta.get("arguments", ()), is_module)
    wanted = _chosen(only)
    guard = Guard.BACKUP if backup else Guard.GIT
    if is_applied and program.cells:
        check_writable(program.path, guard)
    fixes = try_fixes(program, settings_near(program.path), chosen=wanted, engine=engine, timeout_s=timeout)
    if is_applied:
        write(fixes.before, fixes.after, guard)
    if as_json:
        click.echo(_json(program, fixes, is_applied))
    else:
        _print(program, fixes, is_applied)
    is_done = is_applied or not fixes.after
    return FIXED if is_done and not fixes.left() else LEFT


def _program(name: str, arguments: tuple[str, ...], is_module: bool) -> Program:
    from whygrad.execute import program as programs

    return programs.module(name, arguments) if is_module else programs.file(name, arguments)


class _chosen:  # noqa: N801  (a predicate with a state)
    """Whether a finding is one that --only asks for."""

    def __init__(self, only: tuple[str, ...]) -> None:
        from whygrad.rules.registry import all_rules
        from whygrad.rules.settings import Settings

        self._settings = Settings(select=only or ("ALL",))
        for one in only:
            alone = Settings(select=(one,))
            if not any(alone.wants(rule.code, rule.slug) for rule in all_rules()[0]):
                raise BadInput(f"--only {one}: there is no such rule; `whygrad rule --all` lists them.")

    def __call__(self, finding: Finding) -> bool:
        return self._settings.wants(finding.code, finding.slug)


# --- for a person -------------------------------------------------------------------------------------


def _print(program: Program, fixes: Fixes, is_applied: bool) -> None:
    from whygrad.answers.fix import Status

    for sentence in fixes.failed:
        click.echo(f"whygrad: {sentence}", err=True)
    if not fixes.fixes:
        click.echo(f"{program.name}: nothing to fix.")
        return
    for one in fixes.fixes:
        click.echo(_said(one))
    for text in fixes.diffs(_short):
        click.echo()
        for line in text.splitlines():
            click.echo(click.style(line, fg=COLOURS.get(line[:1])))
    verified = [one for one in fixes.fixes if one.status is Status.VERIFIED]
    rows = [
        (row.what, row.before, row.after) for row in (*fixes.changes, *(row for one in verified for row in one.changes))
    ]
    if rows:
        click.echo()
        click.echo(_table([("", "as it is", "with the change"), *rows]))
        if not fixes.seeded:
            click.echo("The program sets no seed, so two runs of it differ in any case.")
    click.echo()
    click.echo(_summed(program, fixes, len(verified), is_applied))


def _said(one: Fix) -> str:
    from whygrad.answers.fix import Status

    finding = one.finding
    place = f"{_short(finding.place.path)}:{finding.place.line}"
    head = f"{finding.code} {finding.severity.value} {place}: {finding.title}"
    if one.status is Status.VERIFIED:
        return f"{head}\n  {click.style('verified', fg='green')}: {finding.fix}"
    if one.status is Status.SUGGESTED:
        return f"{head}\n  suggestion, not tried: {finding.fix}"
    return f"{head}\n  suggestion: {finding.fix}\n  A change was prepared and is not offered: {one.reason}."


def _table(rows: list[tuple[str, str, str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return "\n".join(f"  {row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]}".rstrip() for row in rows)


def _summed(program: Program, fixes: Fixes, verified: int, is_applied: bool) -> str:
    found, left = len(fixes.fixes), len(fixes.left())
    text = f"{found} finding{'' if found == 1 else 's'}: {verified} fixed by a change that was run, {left} left."
    if not verified:
        return text
    files = ", ".join(_short(source.path) for source in fixes.after)
    option = "-m " if program.module and program.argv[0] == "-m" else ""
    name = program.module if option else program.name
    return f"{text} {files} written." if is_applied else f"{text} `whygrad fix --apply {option}{name}` writes it."


def _short(path: str) -> str:
    """A path as it is called from here."""
    try:
        relative = os.path.relpath(path)
    except ValueError:  # another drive
        return path
    return path if relative.startswith(os.pardir) else relative


# --- for a machine ------------------------------------------------------------------------------------


def _json(program: Program, fixes: Fixes, is_applied: bool) -> str:
    import msgspec

    summary = {
        "schema": 1,
        "program": program.name,
        "runs": fixes.runs,
        "seeded": fixes.seeded,
        "findings": [
            {
                "code": one.finding.code,
                "slug": one.finding.slug,
                "severity": one.finding.severity.value,
                "path": one.finding.place.path,
                "line": one.finding.place.line,
                "title": one.finding.title,
                "suggestion": one.finding.fix,
                "fix": one.status.value,
                "reason": one.reason,
                "changes": one.changes,
            }
            for one in fixes.fixes
        ],
        "changes": fixes.changes,
        "diffs": fixes.diffs(_short),
        "applied": is_applied and bool(fixes.after),
        "failed": fixes.failed,
    }
    return msgspec.json.encode(summary).decode()
