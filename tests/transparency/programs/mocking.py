# Test frameworks inside the program: mocks that note every touch, unittest, a proxy that must not be touched.
import sys
import traceback
import unittest
from unittest import mock


class Untouchable:
    """Any attribute, even its class, is off limits."""

    def __getattribute__(self, name):
        raise RuntimeError(f"touched: {name}")


class Proxy:
    """As the local proxies of web frameworks: it stands for another object, or for none yet."""

    target = None

    @property
    def __class__(self):
        touched.append("__class__")
        if Proxy.target is None:
            raise RuntimeError("working outside of a context")
        return type(Proxy.target)

    def __getattr__(self, name):
        touched.append(name)
        return getattr(Proxy.target, name)


touched = []
u, proxy = Untouchable(), Proxy()
box = [u, proxy]
v = box[0]
w = box[1]


def passing(*things):
    first, second = things
    return first if first is second else second


result = passing(u, passing(proxy, u))
print(result is u, touched)
with mock.patch("sys.argv", ["a", "b"]):
    print(sys.argv)
m = mock.MagicMock(name="m")
x = m.grad + m.data
m.grad = None
y = m(1, x=m.shape)[0].backward(m)
y += 1
assert m != 1 and m[0] is not m, m
for item in m:
    print("never", item)
print(len(m.mock_calls), m.method_calls, [name for name, _, _ in m.mock_calls])
spec = mock.create_autospec(passing)
spec(1, 2)
print(spec.mock_calls)
strict = mock.NonCallableMock(spec=["only"])
try:
    strict.grad = 1
    strict.other
except AttributeError as error:
    print(error)


class Tests(unittest.TestCase):
    def test_passes(self):
        self.assertEqual([1] + [2], [1, 2])

    def test_fails(self):
        self.assertEqual({"a": len("x")}, {"a": 2})

    def test_raises(self):
        with self.assertRaises(ZeroDivisionError) as caught:
            1 / len("")
        self.assertIn("zero", str(caught.exception))

    def test_errors(self):
        return [][
            0
        ]

    def test_sub(self):
        for n in range(2):
            with self.subTest(n=n):
                assert n == 0, f"n is {n}"


result = unittest.TestResult()
unittest.defaultTestLoader.loadTestsFromTestCase(Tests).run(result)
print(result)
for test, text in result.failures + result.errors:
    print(test, text)
try:
    len(u.anything)
except RuntimeError:
    traceback.print_exc()
