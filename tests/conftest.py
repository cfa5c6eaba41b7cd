"""What all tests share: this folder on the import path (for `ledgers`), Hypothesis without deadlines, golden files."""

from collections.abc import Callable

import pytest
from hypothesis import settings

settings.register_profile("shared machine", deadline=None)
settings.load_profile("shared machine")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files instead of comparing")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden("name.txt", text)` compares with golden/name.txt beside the test; --update-golden rewrites it."""

    def compare(name: str, text: str) -> None:
        path = request.path.parent / "golden" / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8"), f"{path} differs; look, then run pytest --update-golden"

    return compare
