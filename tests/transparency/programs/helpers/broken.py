"""A module whose import fails."""

VALUES = {"a": 1}
FIRST = VALUES["a"] + VALUES[
    "b"
]
