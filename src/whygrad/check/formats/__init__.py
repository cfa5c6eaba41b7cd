"""One module a format: from its text to the blocks of Python in it."""
