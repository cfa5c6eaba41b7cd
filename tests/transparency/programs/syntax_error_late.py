# An error that only the compiler finds, after the parser was content.
# transparency: differs="a program that does not compile is bad input: one line and exit code 2"
print("never printed")


def function():
    x = 1
    global x
    return (yield) + x


return 3
