"""`whygrad engines`: which engines are here, and how much of PyTorch's API the embedded one covers."""

from __future__ import annotations

import click

HELP = """The engines that can run a program, their versions, and what the embedded one covers.

\b
  whygrad engines                        what is here
  whygrad engines --missing              ... and what the embedded lacks
  whygrad run --engine embedded lab.py   run without PyTorch
  whygrad run --engine both lab.py       run on both, and compare

Where PyTorch is installed, programs run on it. The embedded engine needs NumPy alone.
"""


@click.command(help=HELP)
@click.option("--missing", is_flag=True, help="List every name that is not covered.")
def engines(missing: bool) -> None:
    from whygrad.engines.embedded import coverage, torch

    click.echo(f"pytorch   {_pytorch()}")
    click.echo(f"embedded  {torch.__version__}, on NumPy {_version('numpy')}")
    click.echo("\nThe embedded engine covers, by names of PyTorch's API:\n")
    for area in coverage.areas():
        click.echo(f"  {area.name:<20} {area.covered:>4} of {area.total}")
        if missing and area.missing:
            click.echo(click.wrap_text(", ".join(area.missing), 80, "      ", "      "))
    if not missing:
        click.echo("\n`whygrad engines --missing` lists what it lacks. A program that uses such a name is told so.")


def _pytorch() -> str:
    from whygrad.engines.choice import has_pytorch

    version = _version("torch")
    if version:
        return version
    return "found, without a version" if has_pytorch() else "not installed (`pip install torch`)"


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return ""
