"""The table [tool.whygrad] of a project."""

from __future__ import annotations

from pathlib import Path

import pytest

from whygrad.errors import BadInput
from whygrad.rules.settings import Settings, settings_near


def project(folder: Path, text: str) -> str:
    (folder / "pyproject.toml").write_text(text)
    (folder / "inner").mkdir()
    return str(folder / "inner" / "train.py")


def test_the_nearest_project_counts(tmp_path: Path) -> None:
    program = project(tmp_path, '[tool.whygrad]\nignore = ["WG5"]\nper-file-ignores = {"a.py" = ["WG1"]}\n')
    (tmp_path / "inner" / "pyproject.toml").write_text("[tool.other]\n")
    settings = settings_near(program)
    assert settings.ignore == ("WG5",)
    assert settings.per_file_ignores == {"a.py": ("WG1",)}
    assert settings.root == str(tmp_path)


def test_without_a_table_all_rules_speak(tmp_path: Path) -> None:
    assert settings_near(project(tmp_path, "[project]\nname = 'whygrad-user'\n")) == Settings()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[tool.whygrad]\nignored = ["WG5"]\n', "ignored"),
        ("[tool.whygrad]\nignore = 5\n", "ignore"),
        ("[tool.whygrad\n", "is not TOML"),
        ("tool.whygrad = 3\n", "is not a table"),
    ],
)
def test_what_is_not_understood_is_said(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        settings_near(project(tmp_path, text))
