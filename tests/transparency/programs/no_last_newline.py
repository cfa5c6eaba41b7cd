# No line feed at the end, a lone expression, and a lambda
import sys
x = [lambda n: n / 0, 2]
print(len(x)); x[0](x[1]) if len(sys.argv) > 9 else print("end")