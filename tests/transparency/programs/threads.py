# Threads, their exceptions, their frames.
import concurrent.futures
import contextvars
import queue
import sys
import threading
import traceback

variable = contextvars.ContextVar("variable", default=0)
local = threading.local()


def show(stream=sys.stdout):
    traceback.print_exc(file=stream)


def depth():
    frame, n = sys._getframe(), 0
    while frame:
        frame, n = frame.f_back, n + 1
    return n


def work(n, results):
    local.value = n * 2
    variable.set(variable.get() + n)
    results.append((n, local.value, variable.get(), depth(), threading.current_thread().name))


results = []
threads = [threading.Thread(target=work, args=(n, results), name=f"t{n}") for n in range(3)]
for thread in threads:
    thread.start()
    thread.join()
print(results, variable.get(), hasattr(local, "value"), depth(), threading.active_count())


def failing(n):
    values = [1, 2]
    return values[n] + values[
        n - 1
    ]


with concurrent.futures.ThreadPoolExecutor(2, thread_name_prefix="pool") as pool:
    print(list(pool.map(lambda n: n + depth(), range(4))))
    future = pool.submit(failing, 5)
    try:
        future.result()
    except IndexError as error:
        print(len(traceback.extract_tb(error.__traceback__)), [f.name for f in traceback.extract_tb(error.__traceback__)])
        show()

thread = threading.Thread(target=failing, args=(7,), name="fails")
thread.start()
thread.join()


def hook(args):
    print("hook:", args.exc_type.__name__, args.exc_value, args.thread.name, len(traceback.extract_tb(args.exc_traceback)))


threading.excepthook = hook
thread = threading.Thread(target=failing, args=(8,), name="hooked")
thread.start()
thread.join()
threading.excepthook = threading.__excepthook__
timer = threading.Timer(0.01, print, ["timer", "fired"])
timer.start()
timer.join()
box, barrier, event, lock = queue.Queue(), threading.Barrier(2), threading.Event(), threading.RLock()


def partner():
    barrier.wait()
    with lock, lock:
        box.put([threading.current_thread().name] * 2)
    event.wait()
    box.put(sum(n for n in range(5)))


thread = threading.Thread(target=partner, name="partner")
thread.start()
barrier.wait()
print(box.get())
event.set()
print(box.get(), thread.join())
calls = []


def tracer(frame, event, arg):
    if frame.f_code.co_filename == __file__:
        calls.append((event, frame.f_code.co_name, frame.f_lineno))
    return tracer


threading.settrace(tracer)
thread = threading.Thread(target=lambda: work(1, []), name="traced")
thread.start()
thread.join()
threading.settrace(None)
print(calls)
print(variable.get(), contextvars.copy_context().run(lambda: variable.set(5) and variable.get()), variable.get())
print(sorted(t.name for t in threading.enumerate()), len(sys._current_frames()))
