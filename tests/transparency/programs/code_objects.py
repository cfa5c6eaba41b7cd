# What only bytecode shows: the taps are constants of the code objects.
# transparency: differs="taps are in the code objects: their constants, their size, what marshal can write"
import dis
import marshal


def function(x):
    return x + len([x])


print(function.__code__.co_consts, function.__code__.co_stacksize)
print([instruction.opname for instruction in dis.get_instructions(function)])
try:
    print(len(marshal.dumps(function.__code__)))
except ValueError as error:
    print(error)
