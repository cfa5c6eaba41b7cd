"""What the user typed becomes a program, or one sentence that says what is wrong with it."""

import os
import zipfile
from pathlib import Path

import pytest

from whygrad.errors import BadInput
from whygrad.execute import program
from whygrad.execute.program import Kind


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path.resolve()


def refused(name: str) -> str:
    with pytest.raises(BadInput) as caught:
        program.file(name)
    return str(caught.value)


def module_refused(name: str) -> str:
    with pytest.raises(BadInput) as caught:
        program.module(name)
    return str(caught.value)


def test_a_script_keeps_the_name_that_was_typed_and_its_arguments(here: Path) -> None:
    Path("train.py").write_text("print(1)\n")
    found = program.file("train.py", ["--epochs", "2"])
    assert (found.kind, found.name, found.argv) == (Kind.SCRIPT, "train.py", ("train.py", "--epochs", "2"))
    assert (found.path, found.search) == (str(here / "train.py"), str(here))
    assert found.cells[0].source == b"print(1)\n"


def test_a_script_need_not_end_in_py() -> None:
    Path("train").write_text("#!/usr/bin/env python\nprint(1)\n")
    assert program.file("train").kind is Kind.SCRIPT


def test_a_scripts_search_path_follows_links(here: Path) -> None:
    (here / "sub").mkdir()
    (here / "sub" / "train.py").write_text("")
    (here / "link.py").symlink_to("sub/train.py")
    found = program.file("link.py")
    assert (found.path, found.search) == (str(here / "link.py"), str(here / "sub"))


def test_a_folder_or_an_archive_is_run_by_its_main(here: Path) -> None:
    (here / "sub").mkdir()
    (here / "sub" / "__main__.py").write_text("print(1)\n")
    with zipfile.ZipFile("app", "w") as archive:
        archive.write(here / "sub" / "__main__.py", "__main__.py")
    folder, app = program.file("sub"), program.file("app")
    assert (folder.kind, folder.module, folder.cells[0].path) == (
        Kind.FOLDER,
        "__main__",
        str(here / "sub/__main__.py"),
    )
    assert (app.kind, app.cells, app.search) == (Kind.FOLDER, (), str(here / "app"))


def test_a_module_is_found_without_importing_it(here: Path) -> None:
    (here / "package").mkdir()
    (here / "package" / "__init__.py").write_text("raise RuntimeError\n")
    (here / "package" / "__main__.py").write_text("")
    (here / "package" / "train.py").write_text("")
    assert program.module("package.train").path == str(here / "package" / "train.py")
    assert program.module("package", ["-v"]).path == str(here / "package" / "__main__.py")
    assert program.module("package", ["-v"]).argv == ("-m", "-v")


def test_a_module_of_the_library_is_found() -> None:
    assert program.module("json.tool").path.endswith(os.path.join("json", "tool.py"))
    assert program.module("this").kind is Kind.MODULE


def test_a_namespace_package_is_searched(here: Path) -> None:
    (here / "space").mkdir()
    (here / "space" / "train.py").write_text("")
    assert program.module("space.train").path == str(here / "space" / "train.py")


@pytest.mark.parametrize(("name", "sentence"), [
    ("absent.py", "absent.py: there is no such file."),
    ("empty", "empty: is a directory without a __main__.py, so there is nothing to run."),
    ("app.zip", "app.zip: is an archive without a __main__.py, so there is nothing to run."),
    ("nul.py", "nul.py:2: holds a NUL byte, so it is not Python source."),
    ("latin.py", "latin.py:2: is not UTF-8 text (byte 0xe4)."),
    ("lying.py", "lying.py:2: is not ascii text, which it says it is."),
    ("unknown.py", "unknown.py:3: is not UTF-8 text (byte 0xe4)."),
    ("a\0b.py", "'a\\x00b.py': is not a file name: embedded null byte."),
    ("train.py/x", "train.py/x: cannot be read: Not a directory."),
])  # fmt: skip
def test_a_file_that_is_no_program_is_refused(here: Path, name: str, sentence: str) -> None:
    (here / "empty").mkdir()
    zipfile.ZipFile("app.zip", "w").close()
    with zipfile.ZipFile("app.zip", "w") as archive:
        archive.writestr("other.py", "")
    Path("train.py").write_text("")
    Path("nul.py").write_bytes(b"x = 1\ny = '\0'\n")
    Path("latin.py").write_bytes(b"x = 1\n# \xe4\n")
    Path("lying.py").write_bytes(b"# coding: ascii\nx = '\xe4'\n")
    Path("unknown.py").write_bytes(b"# coding: martian\n\nx = '\xe4'\n")
    assert refused(name) == sentence


def test_source_in_a_declared_encoding_is_accepted() -> None:
    Path("latin.py").write_bytes("# coding: latin-1\nx = 'ä'\n".encode("latin-1"))
    Path("marked.py").write_bytes(b"\xef\xbb\xbfx = 1\n")
    assert program.file("latin.py").kind is program.file("marked.py").kind is Kind.SCRIPT


@pytest.mark.parametrize(("name", "sentence"), [
    ("absent", "-m absent: there is no such module."),
    ("absent.train", "-m absent.train: there is no such module (there is no absent)."),
    ("package", "-m package: is a package without a __main__ module, so it cannot be run."),
    ("package.absent", "-m package.absent: there is no such module."),
    ("package.part.deeper", "-m package.part.deeper: package.part is a module, not a package."),
    ("train.py", "-m train.py: train is a module, not a package."),
    ("../train", "-m ../train: is not a module's name, such as package.module."),
    ("", "-m : is not a module's name, such as package.module."),
])  # fmt: skip
def test_a_module_that_is_none_is_refused(here: Path, name: str, sentence: str) -> None:
    (here / "package").mkdir()
    (here / "package" / "__init__.py").write_text("")
    (here / "package" / "part.py").write_text("")
    Path("train.py").write_text("")
    assert module_refused(name) == sentence


def test_code_with_a_nul_is_refused() -> None:
    with pytest.raises(BadInput, match="NUL"):
        program.code("x = '\0'")
