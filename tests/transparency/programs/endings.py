# Every way to end.
# transparency: -- return
# transparency: -- exit
# transparency: -- exit-none
# transparency: -- exit-zero
# transparency: -- exit-seven
# transparency: -- exit-text
# transparency: -- exit-tuple
# transparency: -- exit-float
# transparency: -- exit-256
# transparency: -- exit-negative
# transparency: -- exit-huge
# transparency: -- exit-true
# transparency: -- exit-subclass
# transparency: -- exit-builtin
# transparency: -- exit-in-thread
# transparency: -- exit-in-atexit
# transparency: -- exit-in-finally
# transparency: -- exit-unprintable
# transparency: -- raise
# transparency: -- raise-multiline
# transparency: -- raise-chained
# transparency: -- raise-context
# transparency: -- raise-suppressed
# transparency: -- raise-group
# transparency: -- raise-note
# transparency: -- raise-unprintable
# transparency: -- raise-in-atexit
# transparency: -- raise-in-thread
# transparency: -- raise-in-del
# transparency: -- raise-in-excepthook
# transparency: -- raise-class
# transparency: -- raise-recursion
# transparency: -- raise-unicode
# transparency: -- raise-generator-exit
# transparency: -- excepthook
# transparency: -- assert
# transparency: -- assert-message
# transparency: python="-O" -- assert
# transparency: -- interrupt
# transparency: -- interrupt-signal
# transparency: -- interrupt-caught
# transparency: -- interrupt-handler
# transparency: -- os-exit
# transparency: -- term
# transparency: -- term-handler
# transparency: -- term-exit-handler
# transparency: -- kill
# transparency: -- abort
# transparency: -- hup
# transparency: -- alarm
# transparency: -- segfault
# transparency: -- syntax-eval
# transparency: -- name-error
# transparency: -- attribute-error
# transparency: -- import-error
# transparency: -- stdout-closed
# transparency: differs="the interpreter prints the reference count of the exception" -- stderr-closed
# transparency: -- stderr-none
# transparency: -- daemon-thread
# transparency: -- join-thread
# transparency: -- exec-other
# transparency: merged -- raise
# transparency: merged -- exit-text
# transparency: python="-u" merged -- raise-in-thread
# transparency: python="-X dev" -- raise
# transparency: python="-X no_debug_ranges" needs=3.11 -- raise-multiline
import atexit
import os
import signal
import sys
import threading
import time


def ending_return():
    return 3


def ending_exit():
    sys.exit()


def ending_exit_none():
    sys.exit(None)


def ending_exit_zero():
    sys.exit(0)


def ending_exit_seven():
    sys.exit(7)


def ending_exit_text():
    sys.exit("words to stderr")


def ending_exit_tuple():
    sys.exit((1, 2))


def ending_exit_float():
    raise SystemExit(2.5)


def ending_exit_256():
    sys.exit(256 + 5)


def ending_exit_negative():
    sys.exit(-1)


def ending_exit_huge():
    sys.exit(2**80)


def ending_exit_true():
    sys.exit(True)


class Leaving(SystemExit):
    pass


def ending_exit_subclass():
    raise Leaving(11)


def ending_exit_builtin():
    exit(4)


def ending_exit_in_thread():
    thread = threading.Thread(target=sys.exit, args=(9,))
    thread.start()
    thread.join()
    print("still here")


def ending_exit_in_atexit():
    atexit.register(sys.exit, 5)


def ending_exit_in_finally():
    try:
        raise ValueError("replaced")
    finally:
        sys.exit(6)


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no text")


def ending_exit_unprintable():
    sys.exit(Unprintable())


def fail(value, *rest, **named):
    return value / 0


def ending_raise():
    fail(1)


def ending_raise_multiline():
    total = (
        1
        + fail(
            2,
            3,
            key=[number for number in range(3)],
        )
        * 4
    )
    return total


def ending_raise_chained():
    try:
        fail(1)
    except ZeroDivisionError as error:
        raise ValueError("from it") from error


def ending_raise_context():
    try:
        {}["absent"]
    except KeyError:
        (lambda: fail(2))()


def ending_raise_suppressed():
    try:
        fail(1)
    except ZeroDivisionError:
        raise LookupError("alone") from None


def ending_raise_group():
    if sys.version_info < (3, 11):
        raise ValueError("no groups here")
    errors = []
    for value in (1, 2):
        try:
            fail(value)
        except ZeroDivisionError as error:
            errors.append(error)
    raise ExceptionGroup("several", errors)  # noqa: F821


def ending_raise_note():
    error = ValueError("with a note")
    if hasattr(error, "add_note"):
        error.add_note("the note")
    raise error


def ending_raise_unprintable():
    raise Unprintable


def ending_raise_in_atexit():
    atexit.register(fail, 1)
    atexit.register(print, "runs before it")


def ending_raise_in_thread():
    thread = threading.Thread(target=fail, args=(1,), name="worker")
    thread.start()
    thread.join()
    print("the main thread goes on")


class Dying:
    def __repr__(self):
        return "<Dying>"

    def __del__(self):
        fail(3)


def ending_raise_in_del():
    dying = Dying()
    print("made", dying)
    del dying
    print("after del")


def ending_raise_in_excepthook():
    def hook(kind, value, trace):
        fail(value.args[0])

    sys.excepthook = hook
    raise ValueError(5)


def ending_raise_class():
    raise KeyError


def ending_raise_recursion():
    def deep(n):
        return deep(n + 1)

    deep(0)


def ending_raise_unicode():
    größe = {"größe": "🐍"}; 値 = größe["größe"] + größe["ärger"]
    return 値


def ending_raise_generator_exit():
    raise GeneratorExit("odd")


def ending_excepthook():
    def hook(kind, value, trace):
        depth = 0
        while trace:
            print("hook:", trace.tb_lineno, trace.tb_frame.f_code.co_name)
            trace, depth = trace.tb_next, depth + 1
        print("hook:", kind.__name__, value, "depth", depth)

    sys.excepthook = hook
    fail(1)


def ending_assert():
    numbers = [1, 2, 3]
    assert sum(numbers) == 7 and len(numbers) < 10
    print("assertions are off")


def ending_assert_message():
    numbers = [1, 2, 3]
    assert (
        max(numbers)
        > 5
    ), f"largest of {len(numbers)}: {max(numbers)}"


def ending_interrupt():
    raise KeyboardInterrupt


def ending_interrupt_signal():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(5)


def ending_interrupt_caught():
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        print("caught")
        sys.exit(130)


def ending_interrupt_handler():
    signal.signal(signal.SIGINT, lambda number, frame: print("handler in", frame.f_code.co_name))
    signal.raise_signal(signal.SIGINT)
    print("went on")


def ending_os_exit():
    print("not flushed by os._exit in a pipe")
    sys.stdout.flush()
    print("lost")
    os._exit(12)


def ending_term():
    print("before")
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(5)
    print("never")


def ending_term_handler():
    def handler(number, frame):
        print("handled", signal.Signals(number).name)
        raise SystemExit(3)

    print("default:", signal.signal(signal.SIGTERM, handler))
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(5)


def ending_term_exit_handler():
    print("ignored:", signal.signal(signal.SIGTERM, signal.SIG_IGN))
    os.kill(os.getpid(), signal.SIGTERM)
    print("back:", signal.signal(signal.SIGTERM, signal.SIG_DFL))
    sys.stdout.flush()
    signal.raise_signal(signal.SIGTERM)


def ending_kill():
    print("flushed", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


def ending_abort():
    print("flushed", flush=True)
    os.abort()


def ending_hup():
    os.kill(os.getpid(), signal.SIGHUP)
    time.sleep(5)


def ending_alarm():
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    time.sleep(5)


def ending_segfault():
    os.kill(os.getpid(), signal.SIGSEGV)
    time.sleep(5)


def ending_syntax_eval():
    eval("1 +* 2")


def ending_name_error():
    numbers = [1]
    return numbres + numbers  # noqa: F821


def ending_attribute_error():
    numbers = [1]
    return numbers.appendd(3)


def ending_import_error():
    from helpers import not_there  # noqa: F401


def ending_stdout_closed():
    print("before")
    sys.stdout.close()
    sys.stderr.write("stdout is closed\n")


def ending_stderr_closed():
    sys.stderr.close()
    fail(1)


def ending_stderr_none():
    sys.stderr = None
    fail(1)


def ending_daemon_thread():
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    print("does not wait")


def ending_join_thread():
    def late():
        time.sleep(0.05)
        print("waited for")

    threading.Thread(target=late).start()
    print("main is done")


def ending_exec_other():
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-c", "import sys; print('another program', sys.argv); sys.exit(21)", "x"])


atexit.register(print, "at exit, first registered")
atexit.register(print, "at exit, second registered", file=sys.stderr)
print("begin", sys.argv[1])
ending = globals()["ending_" + sys.argv[1].replace("-", "_")]
result = ending()
print("end", result)
