# The compiler warns about this file.
# transparency:
# transparency: python="-W error" differs="a program that does not compile is bad input: one line and exit code 2"
# transparency: python="-W error::SyntaxWarning" differs="a program that does not compile is bad input: one line and exit code 2"
# transparency: python="-W ignore"
# transparency: python="-W always"
# transparency: python="-W default"
import sys

print(sys.argv[0].rpartition("/")[2], 1 is 1, "\d\w".count("\\"), f"{1}\s", b"\q")
assert (1 == 2, "always true")


def inner():
    if len("a") is not 1:
        print("odd")
    assert ("again", "true")
    return [1, 2][0] is 1, "\z"


print(inner())
try:
    print((1, 2)(3))
except TypeError as error:
    print(error)
try:
    [1, 2]["a"]
except TypeError as error:
    print(error)
