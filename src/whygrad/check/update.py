"""Writes outputs as they are into the pages that show others."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from whygrad.check.documents import Renewal


def renewed(text: str, renewals: Sequence[Renewal]) -> str:
    """The text of a page with its outputs renewed."""
    lines = text.splitlines(keepends=True)
    for one in sorted(renewals, key=lambda one: one.first, reverse=True):
        if one.column >= 0:
            line = lines[one.first - 1]
            start = line.rfind(line[one.column : one.until], one.column)
            lines[one.first - 1] = line[:start] + one.text + line[start + one.until - one.column :]
        else:
            lines[one.first - 1 : one.last - 1] = [one.text]
    return "".join(lines)


def differences(renewals: Sequence[Renewal]) -> dict[str, tuple[str, str]]:
    """For each file that changes: its new text, and what differs."""
    by_path: dict[str, list[Renewal]] = {}
    for one in renewals:
        by_path.setdefault(one.path, []).append(one)
    found = {}
    for path, ours in by_path.items():
        old = Path(path).read_text(encoding="utf-8")
        new = renewed(old, ours)
        diff = difflib.unified_diff(
            old.splitlines(keepends=True), new.splitlines(keepends=True), f"{path} as it is", f"{path} as it runs", n=1
        )
        found[path] = (new, "".join(diff))
    return found
