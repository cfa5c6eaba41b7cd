# Tabs and spaces.
def function():
        first = 1
	second = 2
    return first
