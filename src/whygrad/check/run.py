"""Checks files: reads each as what it is, and puts together what was found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from whygrad.check import documents, paths
from whygrad.check.defect import Checked
from whygrad.check.documents import Renewal
from whygrad.check.problems import check_problems
from whygrad.check.runner import Runner
from whygrad.errors import BadInput
from whygrad.practice import parse


def check(
    names: Sequence[str], runner: Runner, engines: Sequence[str], renewals: list[Renewal] | None = None
) -> Checked:
    """What is wrong with the files and folders of these names. Raises BadInput."""
    problems, pages = [], []
    for path in paths.files(names):
        if Path(path).suffix.lower() in paths.MARKDOWN and parse.is_problem(documents.text_of(path)):
            problems.append(parse.read(path))
        else:
            pages.append(path)
    ids: dict[str, str] = {}
    for problem in problems:
        if problem.front.id in ids:
            raise BadInput(f"{problem.path}:1: the id {problem.front.id} is that of {ids[problem.front.id]}, too.")
        ids[problem.front.id] = problem.path
    checked = check_problems(problems, runner, engines) if problems else Checked()
    if pages:
        checked += documents.check_pages(pages, runner, engines[0], renewals)
    order = sorted(checked.defects, key=lambda one: (one.path, one.line))
    return msgspec.structs.replace(checked, defects=tuple(order))
