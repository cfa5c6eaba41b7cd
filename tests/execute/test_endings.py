"""A program ends as under `python`: what is printed, in which order, by which exit code or signal."""

from textwrap import dedent

import pytest
from side_by_side_runs import Folder, same

ENDINGS = {
    "returning": ("print('done')", "returned", 0),
    "exit without a code": ("import sys; sys.exit()", "exit", 0),
    "exit with a code": ("import sys; sys.exit(3)", "exit", 3),
    "exit with a truth": ("import sys; sys.exit(True)", "exit", 1),
    "exit with a text": ("import sys; print('out'); sys.exit('text')", "exit", 1),
    "exit with an object": ("import sys; sys.exit([1])", "exit", 1),
    "exit with a large code": ("import sys; sys.exit(256 + 7)", "exit", 7),
    "exit with a negative code": ("import sys; sys.exit(-5)", "exit", 251),
    "exit of an unusual kind": ("class Exit(SystemExit):\n    code = property(lambda self: 9)\nraise Exit", "exit", 9),
    "exit in an import": ("import leaves", "exit", 6),
    "an exception": ("def f():\n    raise ValueError('x')\nprint('out')\nf()", "exception", 1),
    "a chain of exceptions": ("try:\n    1 / 0\nexcept Exception as e:\n    raise ValueError from e", "exception", 1),
    "an exception without a text": ("class E(Exception):\n    __str__ = None\nraise E", "exception", 1),
    "an exception in an import": ("import fails", "exception", 1),
    "a missing import": ("import there_is_no_such_module", "exception", 1),
    "a syntax error in an import": ("import broken", "exception", 1),
    "another base exception": ("raise GeneratorExit", "exception", 1),
    "an interrupt": ("print('out')\nraise KeyboardInterrupt", "interrupted", 130),
    "a kind of interrupt": ("class K(KeyboardInterrupt): ...\nraise K", "interrupted", 1),
    "an interrupt in asyncio": (
        "import asyncio\nasync def f():\n    raise KeyboardInterrupt\nasyncio.run(f())", "interrupted", 130,
    ),
    "SIGINT": ("import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(9)", "interrupted", 130),
    "SIGINT and exit handlers": (
        "import atexit, os, signal, time\natexit.register(print, 1)\n"
        "os.kill(os.getpid(), signal.SIGINT)\ntime.sleep(9)", "interrupted", 130,
    ),
    "SIGTERM": ("import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\nprint('never')", "terminated", 143),
    "SIGTERM while it sleeps": (
        "import os, signal, threading, time\n"
        "threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()\ntime.sleep(9)", "terminated", 143,
    ),
    "a hook of the program's": ("import sys\nsys.excepthook = lambda _, e, t: print(t.tb_next)\n1 / 0", "exception", 1),
    "a hook that exits": ("import sys\nsys.excepthook = lambda *_: sys.exit(5)\n1 / 0", "exception", 5),
    "a hook that fails": ("import sys\ndef hook(*_):\n    raise OSError\nsys.excepthook = hook\n1 / 0", "exception", 1),
    "a hook that is none": ("import sys\nsys.excepthook = None\n1 / 0", "exception", 1),
    "a hook that is gone": ("import sys\ndel sys.excepthook\n1 / 0", "exception", 1),
    "what the last exception was": (
        "import atexit, sys\n@atexit.register\ndef told():\n"
        "    print(sys.last_type, sys.last_value, sys.last_traceback.tb_lineno, hasattr(sys, 'last_exc'))\n1 / 0",
        "exception", 1,
    ),
    "__file__ is gone for exit handlers": (
        "import atexit\natexit.register(lambda: print([name for name in globals() if name[0] == '_']))", "returned", 0,
    ),
    "exit handlers in their order": (
        "import atexit, logging.handlers\natexit.register(print, 1)\natexit.register(print, 2)\n"
        "logging.root.addHandler(logging.handlers.MemoryHandler(9, target=logging.StreamHandler()))\n"
        "logging.warning('kept until the end')", "returned", 0,
    ),
    "an exit handler that fails": ("import atexit\natexit.register(lambda: 1 / 0)", "returned", 0),
    "exit handlers called by the program": (
        "import atexit\natexit.register(print, 1)\natexit._run_exitfuncs()\nprint('on')\natexit.register(print, 2)",
        "returned", 0,
    ),
    "a thread that goes on": (
        "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.2), print(2))).start()\nprint(1)",
        "returned", 0,
    ),
    "a thread that fails": ("import threading\nthreading.Thread(target=lambda: 1 / 0).start()", "returned", 0),
    "a thread that does not end": (
        "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()", "returned", 0,
    ),
    "a pool of threads": (
        "from concurrent.futures import ThreadPoolExecutor\nimport atexit\natexit.register(print, 'bye')\n"
        "print(list(ThreadPoolExecutor(2).map(abs, [-1, -2])))", "returned", 0,
    ),
    "a forked child that exits": (
        "import os, sys\nif not (child := os.fork()):\n    sys.exit(4)\nprint(os.waitpid(child, 0)[1] >> 8)",
        "returned", 0,
    ),
    "a forked child that returns": (
        "import atexit, os\natexit.register(print, 1, flush=True)\nif child := os.fork():\n    os.waitpid(child, 0)",
        "returned", 0,
    ),
    "a forked child that is terminated": (
        "import os, signal, time\nif not (child := os.fork()):\n    time.sleep(9)\ntime.sleep(0.1)\n"
        "os.kill(child, signal.SIGTERM)\nprint(os.waitpid(child, 0)[1])", "returned", 0,
    ),
    "a handler of SIGTERM": (
        "import os, signal\nprint(signal.getsignal(signal.SIGTERM))\n"
        "print(signal.signal(signal.SIGTERM, lambda *_: print('mine')))\nos.kill(os.getpid(), signal.SIGTERM)",
        "returned", 0,
    ),
    "standard output closed": ("import sys\nprint('out')\nsys.stdout.close()", "returned", 0),
    "standard output replaced": ("import io, sys\nprint(1)\nsys.stdout = io.StringIO()\nprint(2)", "returned", 0),
    "standard output none": ("import sys\nprint('out')\nsys.stdout = None\nprint('lost')\n1 / 0", "exception", 1),
    "descriptors closed": ("import os\nos.close(1)\nos.close(2)", "returned", 0),
    "another folder": ("import os\nos.chdir('/')\n1 / 0", "exception", 1),
    "without its module": ("import sys\ndel sys.modules['__main__']\n1 / 0", "exception", 1),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDINGS)
def test_ending(folder: Folder, name: str) -> None:
    source, how, code = ENDINGS[name]
    folder.write(program=source, leaves="raise SystemExit(6)", fails="def f():\n    1 / 0\nf()", broken="x = (\n1 +\n")
    ours = same(folder, "program.py")
    assert [ended.split(", ")[:2] for ended in ours.ended] == [[f'["{how}"', str(code)]]


@pytest.mark.parametrize("source", [
    "print('out')\n1 / 0", "import sys\nprint('out')\nsys.exit('text')",
    "import sys\nprint(1)\nprint(2, file=sys.stderr)\nprint(3)\nraise KeyboardInterrupt",
], ids=["exception", "exit", "interrupt"])  # fmt: skip
@pytest.mark.parametrize("kind", ["script", "module", "code"])
def test_both_streams_in_one_pipe_keep_their_order(folder: Folder, source: str, kind: str) -> None:
    folder.write(program=source)
    same(folder, *{"script": ["program.py"], "module": ["-m", "program"], "code": ["-c", source]}[kind], merged=True)


@pytest.mark.parametrize("source", ["import os\nos._exit(7)", "import os\nos.kill(os.getpid(), 9)"])
def test_a_process_that_ends_at_once_tells_nothing(folder: Folder, source: str) -> None:
    folder.write(program=source)
    assert same(folder, "program.py").ended == []


def test_a_program_that_becomes_another_is_bare(folder: Folder) -> None:
    folder.write(
        program=dedent("""
        import os, sys
        if len(sys.argv) == 1:
            os.execv(sys.executable, [sys.executable, __file__, "again"])
        print(sys.argv[1:])
    """)
    )
    assert same(folder, "program.py").ended == []


def test_a_pipe_that_nobody_reads_ends_the_program_as_ever(folder: Folder) -> None:
    import subprocess
    import sys

    folder.write(program="for number in range(100000):\n    print(number)")
    folder.ours("-c", "")  # sets the driver's environment
    outcomes = []
    for command in (["program.py"], [str(folder.driver), "program.py"]):
        process = subprocess.Popen(
            [sys.executable, *command], cwd=folder.path, env=folder.variables(),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()
        process.stderr.close()
        outcomes.append((process.wait(), errors))
    assert outcomes[0] == outcomes[1]
