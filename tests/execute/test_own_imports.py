"""Which imported modules are the user's own, and that their import stays Python's."""

import py_compile
import sys
import sysconfig
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
from side_by_side_runs import Folder, same

from whygrad.execute.imports import OwnFiles, await_import, await_no_more


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path.resolve() / "root"


@pytest.mark.parametrize("name", ["helper.py", "package/part.py", "src/package/deep/part.py", "lib/python/part.py"])
def test_files_below_the_programs_folder_are_own(root: Path, name: str) -> None:
    assert str(root / name) in OwnFiles([str(root)])


@pytest.mark.parametrize("name", [
    "../other.py", "../rooted/other.py", "lib/site-packages/x.py", "x/dist-packages/y/z.py", "env/lib/x.py",
])  # fmt: skip
def test_files_elsewhere_or_installed_are_not(root: Path, name: str) -> None:
    (root / "env").mkdir(parents=True)
    (root / "env" / "pyvenv.cfg").write_text("")
    assert str(root / name) not in OwnFiles([str(root)])


def test_python_and_whygrad_are_not_the_users_own() -> None:
    import json

    import whygrad

    everything = OwnFiles(["/"])
    assert str(json.__file__) not in everything
    assert str(whygrad.__file__) not in everything
    assert str(Path(sysconfig.get_paths()["purelib"]) / "x" / "y.py") not in everything


def test_a_program_that_lies_below_pythons_prefix_is_own() -> None:
    inside = Path(sys.prefix) / "src" / "app"
    assert str(inside / "helper.py") in OwnFiles([str(inside)])


def test_a_link_does_not_make_a_file_own(root: Path) -> None:
    root.mkdir()
    elsewhere = root.parent / "elsewhere.py"
    elsewhere.write_text("")
    (root / "link.py").symlink_to(elsewhere)
    assert str(root / "link.py") not in OwnFiles([str(root)])


def test_own_modules_are_transformed_and_no_others(folder: Folder) -> None:
    folder.write(program="import json, helper, package.part\n", helper="import fractions")
    folder.write(**{"package/__init__": "", "package/part": "from . import other", "package/other": ""})
    ours = folder.ours("program.py")
    assert ours.compiled == ["program.py", "helper.py", "__init__.py", "part.py", "other.py"]


def test_modules_are_found_from_the_folder_or_the_working_directory(folder: Folder) -> None:
    folder.write(beside="", **{"sub/program": "import sys\nsys.path.append('.')\nimport near, beside", "sub/near": ""})
    assert folder.ours("sub/program.py").compiled == ["program.py", "near.py", "beside.py"]


def test_an_engine_in_the_working_directory_is_left_alone(folder: Folder) -> None:
    folder.write(program="import torch.nn", **{"torch/__init__": "", "torch/nn": ""})
    assert folder.ours("program.py").compiled == ["program.py"]


PROGRAMS = {
    "what a module knows of itself": """
        import helper, package
        for module in (helper, package):
            print(module.__spec__, module.__file__, module.__cached__, type(module.__loader__), sorted(vars(module)))
        print(helper.__loader__.get_source("helper"), type(helper.__loader__).get_code.__qualname__)
        import inspect
        print(inspect.getsource(helper.f), helper.__loader__.get_code("helper").co_filename == helper.__file__)
    """,
    "failures inside": """
        import importlib, traceback
        for name in ("broken", "fails", "package.absent", "absent", "deep"):
            try:
                importlib.import_module(name)
            except Exception:
                traceback.print_exc()
            try:
                exec(f"import {name}")
            except Exception:
                traceback.print_exc()
    """,
    "warnings' stack levels": """
        import warns
    """,
    "the compiler's warnings": """
        import dubious, sys
        del sys.modules["dubious"]
        import dubious
    """,
    "reloading": """
        import helper, importlib
        helper.x = 2
        print(importlib.reload(helper) is helper, helper.x)
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("options", [(), ("-W", "error")], ids=["", "-W error"])
def test_import_shows(folder: Folder, name: str, options: tuple[str, ...]) -> None:
    from textwrap import dedent

    folder.write(
        program=dedent(PROGRAMS[name]), helper="x = 1\ndef f():\n    return x\n", broken="x = (\n1 +\n",
        fails="def f():\n    1 / 0\nf()\n", deep="import fails", dubious="x = '\\d'\n",
        warns="import warnings\nfor level in range(1, 5):\n    warnings.warn('w', stacklevel=level)\n",
        **{"package/__init__": ""},
    )  # fmt: skip
    same(folder, "program.py", options=options)


def test_a_stale_pyc_is_not_run_and_none_is_written(folder: Folder) -> None:
    folder.write(program="import helper", helper="print('old')")
    cached = Path(str(py_compile.compile(str(folder.path / "helper.py"))))
    before = cached.read_bytes()
    folder.write(helper="print('new and longer')")
    folder.environment["PYTHONDONTWRITEBYTECODE"] = ""
    assert folder.ours("program.py").seen.stdout == "new and longer\n"
    assert cached.read_bytes() == before


def test_a_module_that_python_has_compiled_warns_no_more(folder: Folder) -> None:
    folder.write(program="import dubious", dubious="x = '\\d'\n")
    folder.environment["PYTHONDONTWRITEBYTECODE"] = ""
    first = folder.bare("program.py", options=("-W", "always"))
    assert "invalid escape sequence" in first.stderr
    same(folder, "program.py", options=("-W", "always"))


def test_a_loader_with_a_way_of_its_own_is_left_to_it(folder: Folder) -> None:
    folder.write(
        program="""
import importlib.machinery, importlib.util
class Loader(importlib.machinery.SourceFileLoader):
    def source_to_code(self, data, path):
        return super().source_to_code(data.replace(b"1", b"2"), path)
spec = importlib.util.spec_from_file_location("helper", "helper.py", loader=Loader("helper", "helper.py"))
helper = importlib.util.module_from_spec(spec)
spec.loader.exec_module(helper)
print(helper.x)
""",
        helper="x = 1",
    )
    ours = same(folder, "program.py")
    assert ours.seen.stdout == "2\n"
    assert ours.lost == ["helper.py it is imported by a loader that compiles in a way of its own"]


def awaited(folder: Folder, name: str, code: str) -> list[str]:
    """Import a module of one's own while it is awaited: whether it was whole when we were told of it."""
    folder.write(**{name: code})
    told: list[str] = []
    sys.path.insert(0, str(folder.path))
    try:
        await_import(name, lambda module: told.append(f"{module.__name__} {module.__spec__._initializing}"))
        try:
            __import__(name)
        except ZeroDivisionError:
            told.append("raised")
        else:
            assert type(sys.modules[name].__spec__) is ModuleSpec
    finally:
        await_no_more(name)
        sys.path.remove(str(folder.path))
        sys.modules.pop(name, None)
    return told


def test_a_module_that_is_awaited_is_told_when_it_is_imported(folder: Folder) -> None:
    before = list(sys.meta_path)
    assert awaited(folder, "awaited_module", "x = 1") == ["awaited_module False"]
    assert sys.meta_path == before


def test_a_module_that_fails_is_not_told(folder: Folder) -> None:
    assert awaited(folder, "failing_module", "1 / 0") == ["raised"]
