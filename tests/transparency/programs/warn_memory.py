# Python remembers which warnings it has shown: an import, an exec or a run of torch in between changes nothing about it.
# transparency: env=PYTHONDONTWRITEBYTECODE=1 env=PYTHONPYCACHEPREFIX=../cache
import importlib
import sys
import warnings


def warn():
    warnings.warn("shown once for this line")
    warnings.warn("deprecated", DeprecationWarning)


def registry():
    return sorted(str(key) for key in globals().get("__warningregistry__", {}))


for name in ("failing", "facts", "package.inner", "noisy", "facts", "warning"):
    warn()
    sys.modules.pop(f"helpers.{name}", None)
    importlib.import_module(f"helpers.{name}")
    warn()
    assert name, "never"
    try:
        exec("warn()\nif 1 is 1: warn()")
        raise ValueError(name)
    except ValueError:
        warn()
    before = globals().get("__warningregistry__", {}).get("version")
    importlib.import_module("helpers.package.star")
    eval("warn()")
    print(name, registry()[:2], before == __warningregistry__["version"])
print(len(warnings.filters))
