"""Every test gets a folder for the user's files."""

from pathlib import Path

import pytest
from side_by_side_runs import Folder


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    home = tmp_path.resolve() / "home"
    home.mkdir()
    return Folder(home)
