# Warnings of the program's own, of its helper, and of the compiler: their text, their places, how often.
# transparency:
# transparency: python="-W error"
# transparency: python="-W error::UserWarning"
# transparency: python="-W ignore"
# transparency: python="-W always"
# transparency: python="-W once"
# transparency: python="-W module"
# transparency: python="-W ignore::UserWarning:__main__"
# transparency: env=PYTHONWARNINGS=default::DeprecationWarning,error::FutureWarning
# transparency: python="-X dev"
import sys
import traceback
import warnings

from helpers import warning


def level(n):
    warnings.warn(f"level {n}", stacklevel=n)


def outer(n):
    level(n)


def repeat(n, category=UserWarning):
    for i in range(n):
        warnings.warn("the same text", category)


def attempt(function, *args):
    try:
        return function(*args)
    except Warning as warned:
        traceback.print_exc(limit=3)
        return type(warned).__name__


class Body:
    attempt(level, 3)


for n in (1, 2, 3, 4, 9):
    print(n, attempt(outer, n))
print([attempt(outer, 2) for _ in range(2)])
(lambda: attempt(outer, 3))()
attempt(repeat, 3)
attempt(repeat, 2, DeprecationWarning)
attempt(repeat, 2, FutureWarning)
attempt(repeat, 2, PendingDeprecationWarning)
attempt(repeat, 2, ResourceWarning)
for n in (1, 2, 3, 4):
    print("helper", n, attempt(warning.warns, n), attempt(warning.through, n))
attempt(warning.deprecated), attempt(
    warning.deprecated,
)
print("registry:", sorted(str(key)[:60] for key in globals().get("__warningregistry__", {})))
print("registry of helper:", sorted(str(key)[:60] for key in vars(warning).get("__warningregistry__", {})))
for action in ("once", "module", "default", "always", "ignore", "error"):
    with warnings.catch_warnings():
        warnings.simplefilter(action)
        print("==", action, file=sys.stderr)
        for n in (1, 2, 2, 3):
            attempt(outer, n)
        attempt(
            repeat,
            3,
        )
        attempt(warning.warns, 2)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    outer(1)
    outer(2)
    repeat(2)
    warning.through(3)
    warnings.warn_explicit("explicit", UserWarning, "somewhere.py", 7)
    eval("level(2)")
print([(str(w.message), w.category.__name__, w.lineno, w.filename.rpartition("/")[2], w.line, w.source) for w in caught])


def shown(message, category, filename, lineno, file=None, line=None):
    print("shown:", message, category.__name__, filename.rpartition("/")[2], lineno, sys._getframe(1).f_code.co_name, sys._getframe(2).f_code.co_name)


original, warnings.showwarning = warnings.showwarning, shown
attempt(outer, 1)
attempt(outer, 2)
warnings.showwarning = original
formatwarning, warnings.formatwarning = warnings.formatwarning, lambda *args, **kwargs: f"formatted {args[0]} {args[3]} {kwargs}\n"
attempt(outer, 1)
warnings.formatwarning = formatwarning
print("filters:", len(warnings.filters))
file = open(__file__)
del file
print("compiled:", attempt(eval, "1 is 1"), attempt(compile, "'\\d'", "<text>", "eval"))
print("asserted:", attempt(compile, "assert (1, 'always')", "<text>", "exec"))
warnings.warn("last, from the top level")
