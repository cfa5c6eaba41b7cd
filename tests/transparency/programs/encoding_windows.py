"""A byte order mark, and lines that end as on Windows."""
# transparency: -- bom
import inspect
import traceback


def fail(a):
    text = """one
two"""
    return len(text) + [a][
        a
    ]



print(repr(__doc__), repr(inspect.getsource(fail)), fail(0))
try:
    fail(3)
except IndexError:
    traceback.print_exc()
print(repr("""a
b"""), fail.__code__.co_firstlineno)
if 1:
	fail(2)