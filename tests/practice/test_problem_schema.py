"""docs/schema/problem.json is what the types say."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from whygrad.practice.parse import read
from whygrad.practice.schema import documents

DOCS = Path(__file__).parents[2] / "docs" / "schema"
PROBLEMS = Path(__file__).parents[2] / "problems"


@pytest.mark.parametrize("name", documents())
def test_the_published_schema_is_that_of_the_types(name: str, request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden"):
        (DOCS / name).write_text(documents()[name], encoding="utf-8")
    assert (DOCS / name).read_text(encoding="utf-8") == documents()[name]


def test_a_problem_is_valid_by_it() -> None:
    import json

    jsonschema = pytest.importorskip("jsonschema")
    problem = read(str(PROBLEMS / "seeds" / "gradient-of-a-cube.md"))
    jsonschema.validate(json.loads(msgspec.json.encode(problem)), json.loads(documents()["problem.json"]))
