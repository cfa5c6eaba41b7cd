"""Which rules speak: selection in `pyproject.toml`, and `# whygrad: ignore[WG102] reason` in the source.

[tool.whygrad]
select = ["ALL"]            # codes, beginnings of codes, slugs
ignore = ["WG5"]
[tool.whygrad.per-file-ignores]
"examples/*.py" = ["WG102"]
"""

from __future__ import annotations

import re
import sys
from fnmatch import fnmatch
from pathlib import Path

import msgspec

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from whygrad.errors import BadInput
from whygrad.rules.finding import Finding

COMMENT = re.compile(r"#\s*whygrad:\s*ignore(?P<file>-file)?(?:\[(?P<codes>[\w\s,-]*)\])?", re.IGNORECASE)


class Settings(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """The table `[tool.whygrad]`. A code, the beginning of one (`WG1`), a slug, or `ALL` stands for rules."""

    select: tuple[str, ...] = ("ALL",)
    ignore: tuple[str, ...] = ()
    per_file_ignores: dict[str, tuple[str, ...]] = {}
    root: str = ""

    def wants(self, code: str, slug: str) -> bool:
        """Whether the rule runs. The longest of the spellings that match decides; of equals, `ignore`."""
        chosen = max((_weight(one, code, slug) for one in self.select), default=-1)
        refused = max((_weight(one, code, slug) for one in self.ignore), default=-1)
        return chosen > refused

    def overruled(self, select: tuple[str, ...], ignore: tuple[str, ...]) -> Settings:
        """These settings, with what a command line selects or ignores."""
        return msgspec.structs.replace(self, select=select or self.select, ignore=(*self.ignore, *ignore))

    def silences(self, finding: Finding) -> bool:
        """Whether a file's own entry silences the finding."""
        path = finding.place.path
        for pattern, codes in self.per_file_ignores.items():
            here = fnmatch(path, pattern) or fnmatch(path, str(Path(self.root, pattern)))
            if here and any(_weight(one, finding.code, finding.slug) >= 0 for one in codes):
                return True
        return False


def settings_near(path: str) -> Settings:
    """The settings of the project that holds `path`: of the nearest pyproject.toml that has `[tool.whygrad]`.

    Raises BadInput for a file that cannot be read or a key that is not known.
    """
    start = Path(path).absolute()
    for folder in [start, *start.parents] if start.is_dir() else start.parents:
        file = folder / "pyproject.toml"
        if file.is_file() and (table := _table(file)) is not None:
            try:
                return msgspec.convert({**table, "root": str(folder)}, Settings)
            except msgspec.ValidationError as error:
                raise BadInput(f"{file}: [tool.whygrad]: {error}.") from None
    return Settings()


def ignored_in(source: str, finding: Finding) -> bool:
    """Whether a comment in the source silences the finding: on its line, alone on the line above, or for the file."""
    lines = source.splitlines()
    line = finding.place.line
    for number, text in enumerate(lines, 1):
        match = COMMENT.search(text)
        if match is None:
            continue
        alone = text.lstrip().startswith("#")
        if (match["file"] or number == line or (alone and number == line - 1)) and _names(match["codes"], finding):
            return True
    return False


def _names(codes: str | None, finding: Finding) -> bool:
    if codes is None:
        return True
    return any(_weight(one.strip(), finding.code, finding.slug) >= 0 for one in codes.split(",") if one.strip())


def _weight(spelled: str, code: str, slug: str) -> int:
    """How closely `spelled` means the rule; -1 where it does not."""
    text = spelled.lower()
    if text == "all":
        return 0
    if text == slug.lower():
        return len(code)
    return len(text) if code.lower().startswith(text) else -1


def _table(file: Path) -> dict[str, object] | None:
    text = _read(file)
    if "whygrad" not in text:
        return None
    try:
        parsed = tomllib.loads(text)
    except Exception as error:
        raise BadInput(f"{file} is not TOML: {error}.") from None
    table = parsed.get("tool", {}).get("whygrad")
    if table is not None and not isinstance(table, dict):
        raise BadInput(f"{file}: [tool.whygrad] is not a table.")
    return table


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{file} cannot be read: {error}.") from None
