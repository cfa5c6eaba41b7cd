# A debugger at work on the program, with its commands on standard input.
# transparency: stdin="where|p sorted(locals())|next|p b|up|down|list|next|p c|!c = [5]|next|p c|until 22|return|p a|continue|"
# transparency: stdin="n|n|n|n|n|n|n|n|n|n|c|"
# transparency: stdin="b inner|c|args|where|up|p a|c|r|cl 1|c|"
# transparency: differs="a single step leads into the taps" stdin="s|s|s|s|s|s|s|s|s|s|s|s|s|c|"
# transparency: differs="an error that a tracer raises before a line is shown at the line's first instruction" stdin="quit|"
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
