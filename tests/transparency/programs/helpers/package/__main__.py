import sys

print("package's main", __name__, __package__, __spec__.name, sys.argv[1:])
NAME = __name__
