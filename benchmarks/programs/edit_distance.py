"""The distance between two words, again and again: calls, arithmetic and subscripts, and no tensor in sight.

edit_distance.py TIMES FILE [IMPORT]
"""

import sys

from clock import Clock

if len(sys.argv) > 3:
    __import__(sys.argv[3])


def cheapest(left, above, corner, same):
    return min(left + 1, above + 1, corner + (not same))


def distance(first, second):
    table = [[row + column for column in range(len(second) + 1)] for row in range(len(first) + 1)]
    for row in range(len(first)):
        for column in range(len(second)):
            table[row + 1][column + 1] = cheapest(
                table[row + 1][column], table[row][column + 1], table[row][column], first[row] == second[column]
            )
    return table[-1][-1]


clock = Clock(steps=int(sys.argv[1]))
for _ in clock.steps:
    distance("an ordinary training loop with", "nothing of interest to a ledger")
clock.save(sys.argv[2])
