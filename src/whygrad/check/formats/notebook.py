"""Code cells of a notebook, with the outputs that are kept in it."""

from __future__ import annotations

import json
from typing import Any

from whygrad.check.block import Block, Output, Page
from whygrad.errors import BadInput
from whygrad.execute import notebook


def page(path: str, text: str) -> Page:
    """The code cells of a notebook; they share their names. The lines are those of the file, which is JSON."""
    cells, _ = notebook.cells(path, path, text.encode())  # refuses what is no notebook, with the reason
    raw = [
        cell for cell in json.loads(text)["cells"] if cell.get("cell_type") == "code" and _text(cell["source"]).strip()
    ]
    if len(raw) != len(cells):
        raise BadInput(f"{path}: its cells cannot be told apart.")
    blocks = []
    at = 0
    for cell, ready in zip(raw, cells, strict=True):
        source = _text(cell["source"])
        at, line = _find(text, source, at)
        printed, value, raised = _outputs(cell.get("outputs") or [])
        tags = set((cell.get("metadata") or {}).get("tags") or ())
        raises = raised if raised is not None else "" if "raises-exception" in tags else None
        skip = "it is tagged as not to be run" if tags & {"skip", "no-run", "skip-execution"} else ""
        has_run = cell.get("execution_count") is not None
        output = Output(printed, 0, 0) if has_run and (printed or value is not None) else None
        code = ready.source if isinstance(ready.source, str) else ready.source.decode()
        blocks.append(Block(code, line, raises=raises, skip=skip, output=output, value=value))
    return Page(path, tuple(blocks))


def _text(source: Any) -> str:
    return source if isinstance(source, str) else "".join(source)


def _find(text: str, source: str, start: int) -> tuple[int, int]:
    """Where a cell's first line stands in the file."""
    first = next(line for line in source.splitlines() if line.strip())
    found = text.find(json.dumps(first, ensure_ascii=False)[1:-1], start)
    if found < 0:
        found = max(text.find(json.dumps(first)[1:-1], start), start)
    return found + 1, text.count("\n", 0, found) + 1


def _outputs(outputs: list[Any]) -> tuple[str, str | None, str | None]:
    """What a cell printed, its value's text, and the name of the error that ended it."""
    printed, value, raised = "", None, None
    for output in outputs:
        kind = output.get("output_type")
        if kind == "stream" and output.get("name", "stdout") == "stdout":
            printed += _text(output.get("text", ""))
        elif kind == "execute_result":
            data = output.get("data") or {}
            if "text/plain" in data:
                value = _text(data["text/plain"])
        elif kind == "error":
            raised = str(output.get("ename", ""))
    return printed, value, raised
