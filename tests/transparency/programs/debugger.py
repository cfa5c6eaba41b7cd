# A debugger at work on the program, with its commands on standard input.
# transparency: stdin="where|p sorted(locals())|next|p b|step|args|where|return|next|up|down|list|p c|!c = 5|next|continue|"
# transparency: stdin="s|s|s|s|s|s|s|s|s|s|s|s|s|c|"
# transparency: stdin="n|n|n|n|n|n|n|n|n|n|c|"
# transparency: stdin="quit|"
import pdb
import sys


def inner(x):
    y = x + 1
    return [y, x]


def outer(a):
    pdb.Pdb(nosigint=True, readrc=False).set_trace()
    b = a * 2
    c = inner(b) + inner(
        b + 1
    )
    for i in range(2):
        c.append(i)
    return len(c)


print(outer(3))
print("end", len(sys.argv))
