# The state of the interpreter that a program is handed, and that it leaves.
import atexit
import builtins
import faulthandler
import gc
import inspect
import locale
import logging
import os
import signal
import sys
import threading
import warnings

print("hooks:", sys.excepthook is sys.__excepthook__, sys.displayhook is sys.__displayhook__, sys.unraisablehook is sys.__unraisablehook__)
print("hook types:", type(sys.excepthook).__name__, type(sys.unraisablehook).__name__, type(threading.excepthook).__name__)
print("thread hooks:", threading.excepthook.__name__, threading.gettrace() if hasattr(threading, "gettrace") else None)
print("trace:", sys.gettrace(), sys.getprofile())
print("import:", type(builtins.__import__).__name__, type(builtins.__build_class__).__name__, type(builtins.exec).__name__, type(builtins.compile).__name__)
print("builtin names:", sorted(name for name in vars(builtins) if not name.startswith("__"))[-5:], len(vars(builtins)))
print("limits:", sys.getrecursionlimit(), sys.getswitchinterval(), sys.get_int_max_str_digits() if hasattr(sys, "get_int_max_str_digits") else None)
print("gc:", gc.isenabled(), gc.get_threshold(), gc.get_debug(), len(gc.callbacks), len(gc.garbage), gc.get_freeze_count())
print("warnings:", [(action, category.__name__, getattr(module, "pattern", module), line) for action, _, category, module, line in warnings.filters])
print("showwarning:", warnings.showwarning.__module__, warnings.showwarning.__qualname__, inspect.getsourcefile(warnings.showwarning) == warnings.__file__)
print("warn:", type(warnings.warn).__name__, type(warnings.warn_explicit).__name__)
print("signals:", {s.name: getattr(signal.getsignal(s), "__name__", signal.getsignal(s)) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGUSR1, signal.SIGCHLD, signal.SIGALRM, signal.SIGQUIT)})
print("mask:", signal.pthread_sigmask(signal.SIG_BLOCK, []), signal.getitimer(signal.ITIMER_REAL), signal.set_wakeup_fd(-1))
print("threads:", threading.active_count(), [t.name for t in threading.enumerate()], threading.current_thread() is threading.main_thread())
print("faulthandler:", faulthandler.is_enabled())
print("logging:", logging.root.handlers, logging.root.level, logging.root.manager.disable, logging.lastResort.level, logging.getLoggerClass().__name__, logging.raiseExceptions)
print("locale:", locale.setlocale(locale.LC_ALL))
print("environment:", sorted(set(os.environ) - {"_"}))
for name in ("stdin", "stdout", "stderr"):
    stream, original = getattr(sys, name), getattr(sys, f"__{name}__")
    print(name + ":", type(stream).__name__, stream is original, stream.encoding, stream.errors, stream.line_buffering, stream.name, stream.fileno(), stream.isatty(), stream.closed)
print("write_through:", sys.stdout.write_through, sys.stderr.write_through)
print("path_hooks:", [getattr(f, "__qualname__", type(f).__name__) for f in sys.path_hooks])
print("path importer cache:", sorted({type(value).__name__ for value in sys.path_importer_cache.values()}))
print("pycache:", sys.dont_write_bytecode, sys.pycache_prefix)
print("asyncgen hooks:", sys.get_asyncgen_hooks(), sys.get_coroutine_origin_tracking_depth())
print("umask:", oct(os.umask(0o22)))
print("child of:", os.getpgid(0) == os.getpgid(os.getppid()), len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 1)
print("open code:", type(open).__name__, sys.audit is not None)
try:
    print("sched:", os.getpriority(os.PRIO_PROCESS, 0))
except OSError as error:
    print(error)
print("orig_argv:", [os.path.basename(word) for word in getattr(sys, "orig_argv", ["python", __file__])][1:])
print("ps1:", hasattr(sys, "ps1"), hasattr(sys, "last_value"))
print("context:", [variable.name for variable in __import__("contextvars").copy_context()])
print("repr of argv0:", os.path.basename(sys.argv[0]))
atexit.register(print, "at exit: the first registered runs last")
atexit.register(lambda: print("at exit:", threading.active_count(), sys.gettrace()))
