"""IPython and Jupyter: `%load_ext whygrad`, then `%%whygrad` at the top of a cell.

The cell runs in the notebook's own namespace, recorded; its report follows its output.
"""

from __future__ import annotations

import ast
from typing import Any

from whygrad.errors import BadInput
from whygrad.session import Recording, recording

SHOWN = "_whygrad_shown"
"""The name under which the value of a cell's last expression waits to be displayed."""


def load_ipython_extension(shell: Any) -> None:
    """Called by `%load_ext whygrad`."""
    shell.register_magic_function(_cell_magic(shell), "cell", "whygrad")


def _cell_magic(shell: Any) -> Any:
    from IPython.core.error import UsageError as usage_error  # shown as one line  # noqa: N813

    def whygrad(line: str, cell: str) -> Any:
        """Record this cell and show what happened to every gradient. `%%whygrad light` records counters only."""
        depth = line.strip() or "full"
        if depth not in ("full", "light", "auto"):
            raise usage_error(f"%%whygrad takes full, light or auto, not {depth!r}.")
        try:
            return run_cell(shell, cell, depth)
        except BadInput as error:
            raise usage_error(str(error)) from None

    return whygrad


def run_cell(shell: Any, cell: str, depth: str) -> Recording:
    """Run a cell's source in the shell's namespace under a recording, and give the recording.

    The value of a last expression is displayed as IPython does. What the cell raises passes on.
    """
    from whygrad.execute.follow import introduce
    from whygrad.execute.instrument import instrument

    source = shell.transform_cell(cell)
    name = shell.compile.cache(source, shell.execution_count)
    shell.user_ns.pop(SHOWN, None)
    with recording(name, depth) as (ledger, session):
        edit = None if source.rstrip().endswith(";") else _keep_last_value
        code = instrument(source, name, session.table, session.taps, edit).instrumented
        introduce(session.table, session.taps, session.table.statement(name, 1), shell.user_ns, "<module>")
        exec(code, shell.user_ns)
    if SHOWN in shell.user_ns:
        shell.displayhook(shell.user_ns.pop(SHOWN))
    return ledger


def _keep_last_value(tree: ast.Module) -> None:
    """Let the cell's last expression be shown when the recording is over."""
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        target = ast.copy_location(ast.Name(SHOWN, ast.Store()), last)
        tree.body[-1] = ast.copy_location(ast.Assign([target], last.value), last)
