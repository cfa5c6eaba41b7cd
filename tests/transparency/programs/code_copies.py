# Code objects that are copied, replaced and run elsewhere.
import copy
import pickle
import sys
import types

from helpers import facts


def function(x, y=2):
    """Doc."""
    return [x + y, inner(x)]


def inner(x):
    return sys._getframe().f_back.f_code.co_name, x


other = types.FunctionType(function.__code__, {"inner": lambda x: x}, "other", (5,))
print(other(1), other.__name__, other.__doc__)
replaced = function.__code__.replace(co_name="renamed")
print(types.FunctionType(replaced, globals(), "again", (1,))(1))
print(function.__code__ == function.__code__, hash(function.__code__) == hash(function.__code__), function.__code__ == inner.__code__, copy.copy(function) is function)
inner.__code__ = (lambda x: ("swapped", x)).__code__
print(function(3))
exec(function.__code__.replace(co_argcount=0, co_varnames=("x", "y"), co_nlocals=2) if False else compile("print('ran')", "<x>", "exec"))
print(pickle.loads(pickle.dumps(function)) is function, pickle.loads(pickle.dumps(facts.function))(2), pickle.dumps(function), pickle.dumps(facts.Thing))
try:
    pickle.dumps(lambda: 1)
except Exception as error:
    print(type(error).__name__)
try:
    pickle.dumps(function.__code__)
except TypeError as error:
    print(error)
print(function.__code__.co_name, function.__code__.co_varnames, function.__code__.co_names, function.__code__.co_argcount, function.__code__.co_freevars)
print(function.__annotations__, function.__defaults__, vars(function), function.__closure__, function.__globals__ is globals(), function.__builtins__ is __builtins__.__dict__)
