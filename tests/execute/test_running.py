"""A program runs as under `python`: what it finds, what it shows, what lies below it on the stack."""

import pytest
from side_by_side_runs import Folder, same

LOOK = """
import sys, traceback
print([(name, str(value)) for name, value in globals().copy().items() if name != "__builtins__"])
print(type(__builtins__), type(__loader__), getattr(__loader__, "name", None), getattr(__loader__, "path", None))
print(sys.argv, sys.path, type(sys.modules["__main__"]), sys.modules["__main__"].__dict__ is globals())
traceback.print_stack()
def fail():
    1 / 0
print("before the failure")
fail()
"""


@pytest.mark.parametrize("command", [
    ("look.py",), ("./sub/../look.py", "-v", "a b"), ("sub/look.py", "--help"), ("link.py",),
    ("-m", "look", "-m", "x"), ("-m", "package", "x"), ("-m", "package.part"), ("package",), ("archive.zip", "x"),
    ("-c", LOOK, "-c", "y"), ("-", "x"),
], ids=lambda command: " ".join(command).replace(LOOK, "CODE"))  # fmt: skip
def test_every_kind_of_program_finds_what_python_gives_it(folder: Folder, command: tuple[str, ...]) -> None:
    import zipfile

    folder.write(**dict.fromkeys(("look", "sub/look", "package/__main__", "package/part"), LOOK))
    folder.write(**{"package/__init__": ""})
    (folder.path / "link.py").symlink_to("sub/look.py")
    with zipfile.ZipFile(folder.path / "archive.zip", "w") as archive:
        archive.writestr("__main__.py", LOOK)
    ours = same(folder, *command, stdin=LOOK.encode())
    assert ours.ended == ['["exception", 1, "ZeroDivisionError"]']


def test_the_safe_path_is_respected(folder: Folder) -> None:
    import sys

    option = "-P" if sys.version_info >= (3, 11) else "-I"
    source = "import sys\nprint([path for path in sys.path if path in ('', '.') or 'home' in path])\n"
    folder.write(look=source)
    folder.environment["PYTHONPATH"] = ""
    bare = folder.bare("look.py", options=(option,))
    assert bare.stdout == "[]\n"
    if option == "-P":
        folder.environment.pop("PYTHONPATH")
        assert folder.ours("look.py", options=(option,)).seen.stdout == bare.stdout


PROGRAMS = {
    "nothing of ours is on the stack": """
        import inspect, sys, traceback, warnings
        print(len(inspect.stack()), traceback.format_stack())
        try:
            sys._getframe(1)
        except ValueError as error:
            print(error)
        def warn():
            warnings.warn("too deep", stacklevel=3)
        warn()
    """,
    "recursion goes as deep": """
        import sys
        depth = 0
        def deeper():
            global depth
            depth += 1
            deeper()
        for limit in (sys.getrecursionlimit(), 300):
            sys.setrecursionlimit(limit)
            depth = 0
            try:
                deeper()
            except RecursionError:
                print(depth, sys.getrecursionlimit())
        deeper()
    """,
    "hooks and last exceptions are untouched": """
        import sys
        print(sys.excepthook is sys.__excepthook__, sys.exc_info(), [name for name in vars(sys) if "last" in name])
    """,
    "deeply nested objects are freed at once": """
        class Told:
            def __del__(self):
                print("freed")
        nested = [Told()]
        for _ in range(300):
            nested = [nested]
        del nested
        print("after")
    """,
    "objects end in the same order": """
        import atexit, sys, helper
        class Told:
            def __init__(self, name):
                self.name = name
            def __del__(self):
                print("end of", self.name)
        a, helper.b, sys.c = Told("a"), Told("helper.b"), Told("sys.c")
        d = [Told("d")]
        d.append(d)
        atexit.register(print, "exit handler", a)
    """,
    "an exit frees its frames first": """
        import atexit, sys
        class Told:
            def __del__(self):
                print("freed")
        def leave():
            told = Told()
            sys.exit(3)
        atexit.register(print, "exit handler")
        leave()
    """,
    "the docstring, annotations and __future__ are the program's": '''
        """The docstring."""
        from __future__ import annotations
        x: undefined = 1
        print(__doc__, __annotations__)
    ''',
    "the compiler's warnings are given once": """
        text = "\\d"
        print(text is "x")
    """,
    "classes of the program can be pickled": """
        import pickle, __main__
        class A: ...
        print(type(pickle.loads(pickle.dumps(A()))) is A is __main__.A)
    """,
    "spawned processes find the program": """
        import multiprocessing
        print(__name__, flush=True)
        def square(x):
            print(x * x, flush=True)
        if __name__ == "__main__":
            for method in multiprocessing.get_all_start_methods():
                process = multiprocessing.get_context(method).Process(target=square, args=(3,))
                process.start()
                process.join()
                print(method, process.exitcode, flush=True)
    """,
    "source is found by inspect": """
        import inspect
        def f():
            return 1
        print(inspect.getsource(f), inspect.getmodule(f))
    """,
    "a tracer sees the program's frames alone": """
        import sys
        def trace(frame, event, argument):
            print(event, frame.f_code.co_name, frame.f_back and frame.f_back.f_back)
            return trace
        sys.settrace(trace)
        (lambda: 1)()
        sys.settrace(None)
    """,
    "the main thread is the main thread": """
        import os, signal, threading
        print(threading.enumerate(), threading.current_thread() is threading.main_thread())
        signal.signal(signal.SIGUSR1, lambda *_: print("signalled"))
        os.kill(os.getpid(), signal.SIGUSR1)
    """,
    "the original command line is the program's": """
        import sys
        print(sys.orig_argv)
    """,
    "standard input is the program's": """
        import sys
        print(input(), sys.stdin.read())
    """,
    "other unraisable exceptions are told as ever": """
        import sys
        class Fails:
            def __del__(self):
                1 / 0
        Fails()
        sys.unraisablehook = lambda told: print("hook", told.exc_value)
        Fails()
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(folder: Folder, name: str) -> None:
    from textwrap import dedent

    folder.write(program=dedent(PROGRAMS[name]).lstrip("\n"), helper="")
    same(folder, "program.py", "-x", "an argument", stdin=b"one\ntwo\n", options=("-W", "default"))


def test_the_main_program_goes_through_the_transform_once(folder: Folder) -> None:
    folder.write(program="print(1)", **{"package/__init__": "", "package/__main__": "print(2)"})
    assert folder.ours("program.py").compiled == ["program.py"]
    assert folder.ours("-m", "package").compiled == ["__main__.py", "__init__.py"]
    assert folder.ours("package").compiled == ["__main__.py"]
    assert folder.ours("-c", "print(3)").compiled == ["<string>"]
    assert folder.ours("-", stdin=b"print(4)").compiled == ["<stdin>"]


def test_without_a_transform_all_is_python(folder: Folder) -> None:
    folder.write(program="import helper\nprint(helper.x)", helper="x = 1")
    ours = folder.ours("program.py", transform="none")
    assert (ours.seen.stdout, ours.compiled, ours.lost) == ("1\n", [], [])


@pytest.mark.parametrize("transform", ["failing", "wrong"])
def test_a_transform_that_fails_loses_the_record_and_not_the_program(folder: Folder, transform: str) -> None:
    folder.write(program="import helper\nprint(helper.x)", helper="x = 1")
    ours = folder.ours("program.py", transform=transform)
    assert (ours.seen.exit_code, ours.seen.stdout, ours.seen.stderr) == (0, "1\n", "")
    assert [line.split()[0] for line in ours.lost] == ["program.py", "helper.py"]


def test_our_own_imports_do_not_meet_the_users_files(folder: Folder) -> None:
    mine = "MINE = True\n"
    folder.write(program="import queue, signal, dataclasses\nprint(queue.MINE, signal.MINE, dataclasses.MINE)")
    folder.write(queue=mine, signal=mine, dataclasses=mine, json="raise ImportError('not for you')", linecache=mine)
    ours = folder.ours("program.py")
    assert ours.seen.stdout == "True True True\n"
    assert ours.ended == ['["returned", 0, "NoneType"]']


def test_a_program_that_is_not_python_is_refused_before_anything_happens(folder: Folder) -> None:
    folder.write(program="print(1)\nx = = 2\n", helper="")
    ours = folder.ours("program.py")
    assert (ours.seen.exit_code, ours.seen.stdout) == (2, "")
    assert ours.seen.stderr == "whygrad: program.py:2: SyntaxError: invalid syntax: x = = 2\n"
    assert ours.ended == []


def test_a_warning_that_is_an_error_refuses_the_program_too(folder: Folder) -> None:
    folder.write(program="x = 1\nprint(x is 1)\n")
    ours = folder.ours("program.py", options=("-W", "error"))
    assert ours.seen.exit_code == 2
    assert ours.seen.stderr.startswith('whygrad: program.py:2: SyntaxError: "is" with ')
