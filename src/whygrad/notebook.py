"""IPython and Jupyter: `%load_ext whygrad`, then `%%whygrad` at the top of a cell.

The cell runs in the notebook's own namespace, recorded. It shows and gives what it would without us; the report
follows, also after a traceback.
"""

from __future__ import annotations

import ast
from traceback import format_exception_only
from typing import Any

from whygrad.errors import BadInput
from whygrad.session import Recording, introduced, recording

SHOWN = "_whygrad_shown"
"""The name under which the value of a cell's last expression waits to be given back."""


def load_ipython_extension(shell: Any) -> None:
    """Called by `%load_ext whygrad`."""
    shell.register_magic_function(_cell_magic(shell), "cell", "whygrad")


def _cell_magic(shell: Any) -> Any:
    from IPython.core.error import UsageError as usage_error  # shown as one line  # noqa: N813

    def whygrad(line: str, cell: str) -> Any:
        """Record this cell and show what happened to every gradient. `%%whygrad light` records counters only.

        The cell's value is that of its last expression, as ever; `whygrad.why("w.grad")` asks about what ran last.
        """
        __tracebackhide__ = True
        depth = line.strip() or "full"
        if depth not in ("full", "light", "auto"):
            raise usage_error(f"%%whygrad takes full, light or auto, not {depth!r}.")
        try:
            _check_syntax(shell, cell)
        except SyntaxError as error:
            raise usage_error("".join(["this cell cannot run:\n", *format_exception_only(error)])) from None
        try:
            return run_cell(shell, cell, depth)
        except BadInput as error:
            raise usage_error(str(error)) from None

    return whygrad


def _check_syntax(shell: Any, cell: str) -> None:
    source = shell.transform_cell(cell)
    compile(source, f"<cell {shell.execution_count}>", "exec", ast.PyCF_ONLY_AST, dont_inherit=True)


def run_cell(shell: Any, cell: str, depth: str) -> Any:
    """Run a cell's source in the shell's namespace under a recording; gives the value of a last expression.

    The report is shown when the cell is over. What the cell raises passes on.
    """
    __tracebackhide__ = True
    from whygrad.execute.follow import introduce
    from whygrad.execute.instrument import instrument

    source = shell.transform_cell(cell)
    name = shell.compile.cache(source, shell.execution_count)
    shell.user_ns.pop(SHOWN, None)
    with recording(name, depth) as (ledger, session):
        _show_afterwards(shell, ledger)
        edit = None if source.rstrip().endswith(";") else _keep_last_value
        code = instrument(source, name, session.table, session.taps, edit).instrumented
        with introduced(ledger, session, name, 1):
            introduce(session.table, session.taps, session.table.statement(name, 1), shell.user_ns, "<module>")
        exec(code, shell.user_ns)
    return shell.user_ns.pop(SHOWN, None)


def _show_afterwards(shell: Any, ledger: Recording) -> None:
    """Show the report when the cell is over: below its value, or below the traceback."""

    def show(*_: Any) -> None:
        from IPython.display import display

        shell.events.unregister("post_run_cell", show)
        display(ledger)  # type: ignore[no-untyped-call]

    shell.events.register("post_run_cell", show)


def _keep_last_value(tree: ast.Module) -> None:
    """Keep the value of the cell's last expression until the recording is over."""
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        target = ast.copy_location(ast.Name(SHOWN, ast.Store()), last)
        tree.body[-1] = ast.copy_location(ast.Assign([target], last.value), last)
