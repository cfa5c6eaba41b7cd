# Tabs and spaces.
# transparency: differs="a program that does not compile is bad input: one line and exit code 2"
def function():
        first = 1
	second = 2
    return first
