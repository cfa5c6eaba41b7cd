from helpers.circular_b import B

A = B + 1
