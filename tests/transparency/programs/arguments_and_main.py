"""What a program can find out about how it was started."""
# transparency: -- one "two words" --flag -v -- tail
# transparency: link -- through-a-link
# transparency: python="-O -B" -- optimised
import __main__
import inspect
import os
import sys

print("names before any other:", list(globals()))
print("argv:", sys.argv[1:], "of", len(sys.argv))
print("argv[0]:", os.path.basename(sys.argv[0]), os.path.isabs(sys.argv[0]))
print("name:", __name__, "file:", __file__, "doc:", __doc__, "package:", __package__, "spec:", __spec__)
print("cached:", globals().get("__cached__", "absent"), "loader:", type(__loader__).__name__, __loader__.name, __loader__.path)
print("builtins:", type(__builtins__).__name__)
print("main is globals:", __main__.__dict__ is globals(), sys.modules["__main__"] is __main__, type(__main__).__name__)
print("dir:", dir(), dir(__main__) == dir())
print("repr:", repr(__main__).replace(os.path.dirname(os.path.abspath(__file__)), "<here>"))
print("path[0]:", sys.path[0], "entries:", len(sys.path))
print("path:", [os.path.basename(p) for p in sys.path])
print("cwd:", os.path.basename(os.getcwd()), os.listdir("."))
print("source:", inspect.getsource(__main__).count("\n"), inspect.getsourcefile(__main__), inspect.getmodule(sys._getframe()) is __main__)
print("flags:", sys.flags)
print("assertions:", __debug__)
print("module names:", [name for name in ("torch", "numpy", "json", "re", "rich", "jinja2", "sympy") if name in sys.modules])


def where():
    """A docstring."""
    frame = sys._getframe(1)
    return frame.f_lineno, frame.f_code.co_name, frame.f_code.co_filename == __file__, frame.f_back is None


print("frame:", where(), sys._getframe().f_back)
print("stack:", [(f.function, f.lineno) for f in inspect.stack()])
print("globals of main frame:", sys._getframe().f_globals is globals(), sys._getframe().f_locals is globals())
print("builtins of frame:", sys._getframe().f_builtins is __builtins__.__dict__)
print("annotations:", globals().get("__annotations__"))
x: int = 3
print("annotations:", __annotations__)
print("names after all others:", sorted(globals()))
