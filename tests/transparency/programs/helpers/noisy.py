import sys

VALUE = [1, 2][0] is 1, "\d"
print("importing", __name__, sys._getframe().f_lineno)
