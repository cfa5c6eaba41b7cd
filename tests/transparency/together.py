"""Runs the programs given as arguments one after another in one process, each as a fresh `__main__`.

A quick stand-in for one process a program; what one of them leaves in torch, the next one meets, in both ways of
running alike.
"""

import importlib.util
import sys
import traceback

for path in sys.argv[1:]:
    print("==", path)
    spec = importlib.util.spec_from_file_location("__main__", path)
    assert spec is not None
    assert spec.loader is not None
    try:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    except SystemExit as left:
        print("exit", left.code)
    except Exception:
        traceback.print_exc()
    sys.stdout.flush()
