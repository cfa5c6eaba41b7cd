# Modules of the program's own: how they are found, what they know of themselves, what is left of their import.
# transparency: env=PYTHONPYCACHEPREFIX=../cache
# transparency: python="-B" env=PYTHONPYCACHEPREFIX=../cache
import importlib
import importlib.util
import inspect
import os
import pickle
import pkgutil
import runpy
import sys
import traceback
import types

import helpers
from helpers import facts
from helpers.package import inner, star
from helpers.package.inner import *  # noqa: F403

here = os.path.dirname(os.path.abspath(__file__))


def short(value):
    return str(value).replace(here, "<here>").partition(".cpython")[0]


for module in (helpers, facts, inner, star):
    spec = module.__spec__
    print(module.__name__, short(module.__file__), short(module.__cached__), module.__package__, type(module.__loader__).__name__)
    print("  ", spec.name, short(spec.origin), short(spec.cached), spec.has_location, spec.parent, type(spec.loader).__name__, spec.loader is module.__loader__)
    print("  ", short(spec.loader.get_filename(module.__name__)), len(spec.loader.get_source(module.__name__)), spec.loader.is_package(module.__name__))
    print("  ", sorted(vars(module)))
    print("  ", repr(module).replace(here, "<here>"), inspect.getsource(module).count("\n"), inspect.getsourcefile(module) == module.__file__)
print(facts.at_import(), facts.FRAMES)
print(inner.value(), star.names, sorted(name for name in globals() if name.startswith("exported")))
print(facts.__doc__, facts.Thing.__doc__, facts.Thing.__module__, inspect.getsource(facts.Thing.method), facts.Thing.method.__code__.co_filename == facts.__file__)
print(facts.lazy_attribute, pkgutil.get_data("helpers", "failing.py")[:20], [m.name for m in pkgutil.iter_modules(helpers.__path__)])
print("code:", type(spec.loader.get_code(star.__name__)).__name__, spec.loader.get_code(star.__name__).co_consts)
try:
    facts.absent
except AttributeError as error:
    print(error)
try:
    from helpers.facts import nothing  # noqa: F401
except ImportError as error:
    print(error.name, short(error.path))
for name in ("helpers.missing", "helpers.broken", "helpers.unfinished", "helpers.circular_a"):
    try:
        importlib.import_module(name)
    except (ImportError, KeyError, SyntaxError, AttributeError):
        traceback.print_exc()
    print(name, name in sys.modules)
again = importlib.reload(facts)
print(again is facts, facts.COUNT, facts.at_import())
del sys.modules["helpers.facts"]
other = importlib.import_module("helpers.facts")
print(other is facts, other.COUNT)
for _ in range(2):
    sys.modules.pop("helpers.noisy", None)
    import helpers.noisy  # prints, and the compiler warns when it has to compile

    print(helpers.noisy.VALUE)
print("main" if __name__ == "__main__" else "not main", runpy.run_path(facts.__file__, run_name="other")["NAME"])
print(runpy.run_module("helpers.package")["NAME"], sys.modules["__main__"].__dict__ is globals())
spec = importlib.util.spec_from_file_location("from_a_path", os.path.join(here, "helpers", "facts.py"))
loaded = importlib.util.module_from_spec(spec)
spec.loader.exec_module(loaded)
print(loaded.NAME, loaded.__name__, "from_a_path" in sys.modules)
made = types.ModuleType("made")
exec("def f():\n    return __name__\nx = f() + '!'", made.__dict__)
print(made.x)
print(pickle.loads(pickle.dumps(facts.Thing(3) if False else other.Thing(3))).value, pickle.dumps(other.function).hex())
with open("written_here.py", "w") as file:
    file.write("import sys\nVALUE = len(sys.path) and 5 + 5\ndef fail():\n    return [][VALUE + 1]\n")
sys.path.insert(0, os.getcwd())
importlib.invalidate_caches()
sys.dont_write_bytecode = True
import written_here  # noqa: E402

try:
    written_here.fail()
except IndexError:
    traceback.print_exc()
os.remove("written_here.py")
print(written_here.VALUE, sys.path[0] == os.getcwd(), os.listdir("."))
print([name for name in sys.modules if name.startswith(("helpers", "written"))])
