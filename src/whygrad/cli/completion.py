"""`whygrad completion SHELL`: print the script that teaches a shell our commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from whygrad.cli import commands
from whygrad.errors import BadInput

HELP = """Print the script that completes our commands in your shell.

\b
  whygrad completion bash > ~/.whygrad.bash
      and in ~/.bashrc:  source ~/.whygrad.bash
  whygrad completion zsh > ~/.zfunc/_whygrad
      and in ~/.zshrc, before compinit:  fpath+=~/.zfunc
  whygrad completion fish > ~/.config/fish/completions/whygrad.fish
"""


@click.command(help=HELP)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    kind = get_completion_class(shell)
    if kind is None:
        raise BadInput(f"this version of click knows no completion for {shell}.")
    click.echo(kind(commands, {}, "whygrad", "_WHYGRAD_COMPLETE").source())
