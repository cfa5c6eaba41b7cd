# Tracers and profilers that look at the program's own functions only.
import bdb
import cProfile
import io
import pstats
import sys
import trace

events = []


def mine(frame):
    return frame.f_code.co_filename == __file__


def helper(x):
    y = x + 1
    return y * 2


def program(n):
    total = 0
    for i in range(n):
        total += helper(i)
        if total > 3:
            a, b = total, [
                helper(v) for v in (1, 2)
            ]
    with open(__file__) as file, open(__file__) as other:
        first = file.readline(); second = other.readline()
    try:
        {}["x"]
    except KeyError as error:
        total += len(error.args)
    finally:
        total -= 1
    box = Box()
    box.value = total
    box.items["a"] = total
    box.items["a"] += 1
    assert box.value == total and first == second, "never"
    while n:
        n -= 1
    return (
        total
        if n
        else -total
    )


class Box:
    items = {"b": 2 + len("x")}

    @property
    def double(self):
        return self.value * 2


def tracer(frame, event, arg):
    if not mine(frame):
        return None
    events.append((event, frame.f_code.co_name, frame.f_lineno, arg[0].__name__ if event == "exception" else arg))
    return tracer


sys.settrace(tracer)
program(2)
sys.settrace(None)
for event in events:
    print(*event)
events.clear()


def profiler(frame, event, arg):
    if mine(frame):
        if event.startswith("c_"):
            events.append((event, frame.f_code.co_name, frame.f_lineno, arg.__name__ if arg.__name__ in ("range", "len", "append", "open", "readline") else None))
        else:
            events.append((event, frame.f_code.co_name, frame.f_lineno, arg if isinstance(arg, int) else None))


sys.setprofile(profiler)
program(1)
sys.setprofile(None)
print([event for event in events if event[3] is not None or not event[0].startswith("c_")])

opcodes = set()


def counting(frame, event, arg):
    if not mine(frame):
        return None
    if event == "line":
        opcodes.add((frame.f_code.co_name, frame.f_lineno))
    return counting


sys.settrace(counting)
program(3)
sys.settrace(None)
print(sorted(opcodes))

profile = cProfile.Profile()
profile.runcall(program, 3)
text = io.StringIO()
stats = pstats.Stats(profile, stream=text)
print(sorted((line, name, calls[0], calls[1]) for (file, line, name), calls in stats.stats.items() if file == __file__))

tracer = trace.Trace(count=1, trace=0)
tracer.runfunc(program, 2)
print(sorted((line, count) for (file, line), count in tracer.results().counts.items() if file == __file__))


class Stepper(bdb.Bdb):
    def user_line(self, frame):
        if mine(frame):
            steps.append((frame.f_code.co_name, frame.f_lineno))
        self.set_next(frame)

    def user_return(self, frame, value):
        if mine(frame):
            steps.append(("return", value))


steps = []
Stepper().runcall(program, 1)
print(steps)
if sys.version_info >= (3, 12):
    monitoring = sys.monitoring
    monitoring.use_tool_id(3, "program")
    seen = []
    monitoring.register_callback(3, monitoring.events.LINE, lambda code, line: seen.append((code.co_name, line)) if code.co_filename == __file__ else None)
    monitoring.set_events(3, monitoring.events.LINE)
    program(1)
    monitoring.set_events(3, 0)
    monitoring.free_tool_id(3)
    print(seen)
