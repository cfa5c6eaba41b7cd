# Standard streams: read, redirected, replaced, unbuffered, and in what order their words come out.
# transparency: stdin="one|two|three|four"
# transparency: merged stdin="one|two|"
# transparency: merged python="-u" stdin="one|"
# transparency: env=PYTHONUNBUFFERED=1 stdin="one|two|three|"
# transparency: env=PYTHONIOENCODING=ascii:backslashreplace stdin="ä|b|"
# transparency: env=PYTHONUTF8=1 env=LC_ALL=C stdin="ä|b|"
import builtins
import contextlib
import io
import os
import sys
import tempfile

print("out 1")
print("err 1", file=sys.stderr)
try:
    print("read", input("prompt> "))
    print("rest", [line.strip() for line in sys.stdin])
    input()
except EOFError as error:
    print("eof", error)
except UnicodeDecodeError as error:
    print("decode", error.reason)
print("out 2 ä€", end="")
sys.stderr.write("err 2, no line end")
sys.stdout.flush()
with contextlib.redirect_stdout(io.StringIO()) as text:
    print("captured", sys.stdout is text)
with contextlib.redirect_stderr(sys.stdout):
    print("to the other", file=sys.stderr)
print(repr(text.getvalue()))
os.write(1, b"raw 1\n")
os.write(2, b"raw 2\n")


class Tee:
    def __init__(self, stream):
        self.stream, self.count = stream, 0

    def write(self, words):
        self.count += len(words)
        return self.stream.write(words.upper())

    def flush(self):
        self.stream.flush()


sys.stdout = tee = Tee(sys.__stdout__)
print("through a tee")
sys.stdout = sys.__stdout__
print(tee.count)
original = builtins.print


def loud(*args, **kwargs):
    original("[loud]", *args, **kwargs)


builtins.print = loud
print("replaced")
builtins.print = original
with tempfile.TemporaryFile("w+") as file:
    saved = os.dup(1)
    sys.stdout.flush()
    os.dup2(file.fileno(), 1)
    print("into a file")
    os.system("echo child into a file")
    sys.stdout.flush()
    os.dup2(saved, 1)
    file.seek(0)
    content = file.read()
print(sorted(content.splitlines()))
print("no line end", end="", flush=True)
print("\rcarriage\x00null\x1b[31mred\x1b[0m")
sys.stdout.buffer.write(b"\xff\xfe bytes\n")
sys.stderr.write("surrogate \udce9\n")
try:
    print("\udce9")
except UnicodeEncodeError as error:
    print(error.reason)
print("x" * 70000)
print("last err", file=sys.stderr)
sys.stdout.write("last out, not flushed")
