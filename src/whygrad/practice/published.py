"""What an answer says in words and digits, as a value that a run can be compared with."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec

from whygrad.execute.jobs import Failure, Plain

EXACT = 1e-6
"""Relative tolerance of a number that is written with few digits: it is meant exactly."""


class Number(msgspec.Struct, frozen=True):
    """A number as it was written; `decimals` is how many digits stand after its point."""

    value: float
    decimals: int = 0
    is_whole: bool = False


class Items(msgspec.Struct, frozen=True):
    """A tensor, list or tuple. `dtype` is "" where none was written; `is_tensor` is false for a bare list."""

    shape: tuple[int, ...]
    numbers: tuple[Number, ...]
    is_tensor: bool = False
    dtype: str = ""
    kind: str = "list"


class Constant(msgspec.Struct, frozen=True):
    """None, True, False, or a dtype."""

    value: bool | str | None


class Error(msgspec.Struct, frozen=True):
    """An exception; `kind` is "" for any."""

    kind: str


class Text(msgspec.Struct, frozen=True):
    """Anything else, compared as words."""

    text: str


Published: TypeAlias = Number | Items | Constant | Error | Text

NUMBER = re.compile(r"[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?$|[-+]?(?:inf|nan)$")
ERROR = re.compile(r"\b([A-Z]\w*(?:Error|Exception|Interrupt|Warning))\b")
ANY_ERROR = re.compile(r"\b(an? (?:\w+ )?error|raises?|raised|exception|errors out)\b", re.IGNORECASE)
TENSOR = re.compile(r"^(?:torch\.)?(?:[tT]ensor|Parameter containing:\s*tensor)\((.*)\)$", re.DOTALL)
SHAPED = re.compile(r"^(.*?)[,;]?\s+(?:with|of|and)\s+shape\s+(?:torch\.Size\()?[(\[]([\d, ]*)[)\]]\)?$", re.DOTALL)


def published(text: str) -> Published:
    """What an answer's text means.

    >>> published("12.0"), published("tensor([2., 4.])").shape, published("a RuntimeError is raised")
    (Number(value=12.0, decimals=1, is_whole=False), (2,), Error(kind='RuntimeError'))
    """
    text = text.strip().strip("`").strip().removesuffix(".") if not _is_number(text.strip()) else text.strip()
    shaped = SHAPED.match(text)
    if shaped is not None:
        inner = published(shaped[1])
        sizes = tuple(int(size) for size in shaped[2].replace(" ", "").split(",") if size)
        if isinstance(inner, Items):
            return inner if inner.shape == sizes else msgspec.structs.replace(inner, shape=sizes)
    if text in ("None", "True", "False"):
        return Constant({"None": None, "True": True, "False": False}[text])
    if re.fullmatch(r"torch\.(?:float|int|bool|complex|bfloat|uint|double|long|half)\w*", text):
        return Constant(text.removeprefix("torch."))
    if _is_number(text):
        return _number(text)
    size = re.fullmatch(r"torch\.Size\((\[.*\])\)", text)
    items = _items(size[1] if size else text)
    if items is not None:
        return msgspec.structs.replace(items, kind="shape") if size else items
    named = ERROR.search(text)
    if named is not None:
        return Error(named[1])
    if ANY_ERROR.search(text):
        return Error("")
    return Text(text)


def _is_number(text: str) -> bool:
    return NUMBER.match(text) is not None


def _number(text: str) -> Number:
    digits = text.lower().split("e")[0]
    decimals = len(digits.partition(".")[2])
    return Number(float(text), decimals, not any(mark in text.lower() for mark in ".einf"))


def _items(text: str) -> Items | None:
    """A tensor, list or tuple, read without evaluating anything."""
    tensor = TENSOR.match(text)
    dtype = ""
    body = text
    if tensor is not None:
        body = tensor[1]
        while (extra := re.search(r",\s*(dtype|requires_grad|grad_fn|device)=([^,()\[\]]*)$", body)) is not None:
            if extra[1] == "dtype":
                dtype = extra[2].strip().removeprefix("torch.")
            body = body[: extra.start()]
    elif not text.startswith(("[", "(")):
        return None
    body = re.sub(r"\b(nan|inf)\b", r'"\1"', body)
    try:
        tree = ast.parse(body.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None
    leaves: list[Number] = []
    try:
        shape = _shape(tree, body.strip(), leaves)
    except ValueError:
        return None
    return Items(shape, tuple(leaves), tensor is not None, dtype, "tuple" if isinstance(tree, ast.Tuple) else "list")


def _shape(tree: ast.expr, source: str, leaves: list[Number]) -> tuple[int, ...]:
    if isinstance(tree, (ast.List, ast.Tuple)):
        inner = [_shape(one, source, leaves) for one in tree.elts]
        if len(set(inner)) > 1:
            raise ValueError
        return (len(inner), *(inner[0] if inner else ()))
    written = (ast.get_source_segment(source, tree) or "").strip('"').replace(" ", "")
    if isinstance(tree, ast.Constant) and isinstance(tree.value, bool):
        leaves.append(Number(float(tree.value), is_whole=True))
    elif _is_number(written):
        leaves.append(_number(written))
    else:
        raise ValueError
    return ()


# --- comparing ----------------------------------------------------------------------------------------


def agrees(said: Published, found: Plain | Failure) -> bool:
    """Whether what was published is what was found: by value, shape and dtype; an error by its type."""
    if isinstance(found, Failure):
        return isinstance(said, Error) and (not said.kind or found.is_a(said.kind))
    if isinstance(said, Number):
        scalar = scalar_of(found)
        return scalar is not None and close(said, scalar)
    if isinstance(said, Constant):
        if isinstance(said.value, str):
            return found.kind == "dtype" and found.value == said.value
        if said.value is None:
            return found.kind == "none"
        return found.value is said.value or (
            found.kind == "tensor" and found.shape == () and found.dtype == "bool" and found.value == [said.value]
        )
    if isinstance(said, Items):
        return _items_agree(said, found)
    if isinstance(said, Text):
        return found.kind == "str" and words(said.text) == words(str(found.value))
    return False


def _items_agree(said: Items, found: Plain) -> bool:
    flat = _flat(found)
    if flat is None or len(flat[1]) != len(said.numbers) or flat[0] != said.shape:
        return False
    if said.is_tensor and found.kind != "tensor":
        return False
    if said.dtype and found.dtype != said.dtype:
        return False
    if said.is_tensor and not said.dtype and said.numbers:
        whole = all(number.is_whole for number in said.numbers)
        if whole != (found.dtype.startswith(("int", "uint", "bool"))):
            return False
    return all(close(number, value) for number, value in zip(said.numbers, flat[1], strict=True))


def _flat(found: Plain) -> tuple[tuple[int, ...], list[float]] | None:
    """Shape and elements of a tensor, a shape, or nested lists of numbers."""
    if found.kind in ("tensor", "array"):
        return None if found.value is None else (found.shape, [_real(one) for one in found.value])
    if found.kind == "shape":
        return (len(found.value),), [float(one) for one in found.value]
    if found.kind in ("list", "tuple"):
        inner = [_flat(one) for one in found.items]
        if any(one is None for one in inner):
            return None
        known = [one for one in inner if one is not None]
        if len({shape for shape, _ in known}) > 1:
            return None
        rest = known[0][0] if known else ()
        return (len(known), *rest), [number for _, numbers in known for number in numbers]
    if found.kind in ("int", "float", "bool") and found.value is not None:
        return (), [float(found.value)]
    return None


def _real(value: Any) -> float:
    return float(value) if not isinstance(value, list) else complex(*value).real


def scalar_of(found: Plain) -> float | None:
    """The number that a value is: a Python number, or a tensor without dimensions. One of shape (1,) is none."""
    if found.kind in ("int", "float") and found.value is not None:
        return float(found.value)
    if found.kind in ("tensor", "array") and found.shape == () and found.value and found.dtype != "bool":
        return _real(found.value[0])
    return None


def close(said: Number, value: float) -> bool:
    """Whether a number is the one that was written; one written with three decimals or more may be rounded.

    >>> close(Number(0.333, 3), 1 / 3), close(Number(0.33, 2), 1 / 3), close(Number(float("nan")), float("nan"))
    (True, False, True)
    """
    if math.isnan(said.value) or math.isnan(value):
        return math.isnan(said.value) and math.isnan(value)
    if math.isinf(said.value) or math.isinf(value):
        return said.value == value
    tolerance = EXACT * abs(said.value)
    if said.decimals >= 3:
        tolerance = max(tolerance, 0.5001 * 10.0**-said.decimals)
    return abs(said.value - value) <= tolerance


def same(one: Plain, other: Plain) -> bool:
    """Whether two values are equal: numbers by value, tensors (or lists in their place) by shape and value."""
    if one.kind == "none" or other.kind == "none":
        return one.kind == other.kind
    left, right = _flat(one), _flat(other)
    if left is not None and right is not None:
        if left[0] != right[0]:
            return False
        if one.kind == other.kind == "tensor" and one.dtype != other.dtype:
            return False
        return all(close(_number(repr(b)), a) for a, b in zip(left[1], right[1], strict=True))
    if one.items or other.items:
        return len(one.items) == len(other.items) and all(map(same, one.items, other.items))
    return (one.kind, one.value) == (other.kind, other.value)


def printed_agrees(said: Published, text: str) -> bool:
    """Whether what was published is what was printed: as a value where both are values, else word by word."""
    found = published(text)
    if isinstance(said, Number) and isinstance(found, Number):
        return close(said, found.value) or close(found, said.value)
    if isinstance(said, Items) and isinstance(found, Items):
        near = zip(said.numbers, found.numbers, strict=False)
        return (
            said.shape == found.shape
            and (not said.is_tensor or found.is_tensor)
            and (said.dtype == found.dtype or not said.is_tensor)
            and all(close(a, b.value) or close(b, a.value) for a, b in near)
        )
    if isinstance(said, Text):
        return text_agrees(said.text, text)
    return said == found


def text_agrees(said: str, found: str) -> bool:
    """Whether two printed texts are the same but for spaces, and numbers but for rounding; `...` stands for anything.

    >>> text_agrees("loss: 0.3333", "loss:  0.33333334"), text_agrees("a ... c", "a b c"), text_agrees("1 2", "1 3")
    (True, True, False)
    """
    left, right = words(said), words(found)
    if "..." in left:
        pattern = ".*?".join(re.escape(part.strip()) for part in " ".join(left).split("..."))
        return re.fullmatch(pattern, " ".join(right).strip(), re.DOTALL) is not None
    return len(left) == len(right) and all(map(_word_agrees, left, right))


def _word_agrees(said: str, found: str) -> bool:
    if said == found:
        return True
    if _is_number(said) and _is_number(found):
        a, b = _number(said), _number(found)
        return a.is_whole == b.is_whole and (close(a, b.value) or close(b, a.value))
    return False


def words(text: str) -> list[str]:
    """The words, numbers and signs of a text."""
    return list(_words(text))


def _words(text: str) -> Iterator[str]:
    for match in re.finditer(r"\.\.\.|[-+]?\d[\d_]*\.?\d*(?:[eE][-+]?\d+)?|\w+|[^\w\s]", text):
        yield match[0]
