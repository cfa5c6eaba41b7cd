# An error that only the compiler finds, after the parser was content.
print("never printed")


def function():
    x = 1
    global x
    return (yield) + x


return 3
