"""Constants only."""

names = "a string", 12345, (1, 2, "nested")
