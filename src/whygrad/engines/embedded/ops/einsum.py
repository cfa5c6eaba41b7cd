"""`torch.einsum`: operands are permuted, multiplied with broadcasting and summed, two at a time, all differentiably."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor


def contract(equation: str, operands: list[Tensor]) -> Tensor:
    """Evaluate an equation such as `bij,bjk->bik`; `...` stands for further dimensions."""
    terms, result = _parse(equation, operands)
    uses: dict[str, int] = {}
    for term in terms:
        for letter in set(term):
            uses[letter] = uses.get(letter, 0) + 1
    sizes = _sizes(terms, operands)
    x, have = _diagonals(operands[0], terms[0])
    uses_left = {k: v - (k in terms[0]) for k, v in uses.items()}
    x, have = _sum_away(x, have, [k for k in have if k not in result and not uses_left[k]])
    for operand, term in zip(operands[1:], terms[1:], strict=True):
        y, other = _diagonals(operand, term)
        for k in set(term):
            uses_left[k] -= 1
        gone = [k for k in dict.fromkeys(have + other) if k not in result and not uses_left[k]]
        y, other = _sum_away(y, other, [k for k in other if k in gone and k not in have])
        x, have = _sum_away(x, have, [k for k in have if k in gone and k not in other])
        x, have = _pair(x, have, y, other, [k for k in gone if k in have and k in other])
    x, have = _sum_away(x, have, [k for k in have if k not in result])
    out = x.permute([have.index(k) for k in result]) if result else x
    del sizes
    return out


def _parse(equation: str, operands: list[Tensor]) -> tuple[list[list[str]], list[str]]:
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    parts = left.split(",")
    if len(parts) < len(operands):
        raise RuntimeError("einsum(): more operands were provided than specified in the equation")
    if len(parts) > len(operands):
        raise RuntimeError("einsum(): fewer operands were provided than specified in the equation")
    terms = []
    longest = 0
    for number, (part, operand) in enumerate(zip(parts, operands, strict=True)):
        letters = part.replace("...", "")
        for c in letters:
            if not c.isalpha():
                raise RuntimeError(
                    f"einsum(): invalid subscript given at index {part.index(c)} in the equation string, "
                    "subscripts must be in [a-zA-Z]"
                )
        extra = operand._a.ndim - len(letters)
        if "..." not in part and extra != 0:
            if extra > 0:
                raise RuntimeError(
                    f"einsum(): the number of subscripts in the equation ({len(letters)}) does not match the number of "
                    f"dimensions ({operand._a.ndim}) for operand {number} and no ellipsis was given"
                )
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(letters)}) does not match the number "
                "of dimensions "
                f"({operand._a.ndim}) for operand {number} and no ellipsis was given"
            )
        if "..." in part and extra < 0:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(letters)}) is more than the number of "
                "dimensions "
                f"({operand._a.ndim}) for operand {number}"
            )
        longest = max(longest, extra if "..." in part else 0)
        terms.append(_letters(part, extra))
    seen = [k for term in terms for k in term]
    dots = [f".{i}" for i in range(longest)]
    if arrow:
        result = _letters(right, longest)
        for k in result:
            if k not in seen and not k.startswith("."):
                raise RuntimeError(
                    f"einsum(): output subscript {k} does not appear in the equation for any input operand"
                )
            if result.count(k) > 1:
                raise RuntimeError(f"einsum(): output subscript {k} appears more than once in the output")
    else:
        result = dots + sorted(k for k in set(seen) if seen.count(k) == 1 and not k.startswith("."))
    return terms, result


def _letters(part: str, extra: int) -> list[str]:
    """Names of dimensions; those under `...` are numbered from the right."""
    before, dots, after = part.partition("...")
    return [*before, *([f".{i}" for i in range(extra - 1, -1, -1)][::-1] if dots else []), *after]


def _sizes(terms: list[list[str]], operands: list[Tensor]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for number, (term, operand) in enumerate(zip(terms, operands, strict=True)):
        for k, n in zip(term, operand._a.shape, strict=True):
            if sizes.get(k, 1) not in (1, n) and n != 1:
                raise RuntimeError(
                    f"einsum(): subscript {k} has size {n} for operand {number} which does not broadcast with "
                    "previously "
                    f"seen size {sizes[k]}"
                )
            sizes[k] = max(sizes.get(k, 1), n) if n != 0 else 0
    return sizes


def _diagonals(x: Tensor, term: list[str]) -> tuple[Tensor, list[str]]:
    have = list(term)
    for k in dict.fromkeys(term):
        while have.count(k) > 1:
            i = have.index(k)
            j = have.index(k, i + 1)
            x = x.diagonal(0, i, j)
            have = [h for n, h in enumerate(have) if n not in (i, j)] + [k]
    return x, have


def _sum_away(x: Tensor, have: list[str], gone: list[str]) -> tuple[Tensor, list[str]]:
    if not gone:
        return x, have
    return x.sum(tuple(have.index(k) for k in gone)), [k for k in have if k not in gone]


def _pair(x: Tensor, have: list[str], y: Tensor, other: list[str], gone: list[str]) -> tuple[Tensor, list[str]]:
    """Multiply two operands: shared dimensions are a batch, `gone` ones are summed by a matrix product."""
    batch = [k for k in have if k in other and k not in gone]
    left = [k for k in have if k not in other]
    right = [k for k in other if k not in have]
    a = x.permute([have.index(k) for k in batch + left + gone]) if have else x
    b = y.permute([other.index(k) for k in batch + gone + right]) if other else y
    n, m, s = len(batch), len(left), len(gone)
    sa, sb = a._a.shape, b._a.shape
    shape = _broadcast(sa[:n], sb[:n])
    if s and sa[n + m :] != sb[n : n + s]:
        common = _broadcast(sa[n + m :], sb[n : n + s])
        a, b = a.expand(*sa[: n + m], *common), b.expand(*sb[:n], *common, *sb[n + s :])
        sa, sb = a._a.shape, b._a.shape
    import math

    k = math.prod(sa[n + m :])
    a3 = a.expand(*shape, *sa[n:]).reshape(math.prod(shape), math.prod(sa[n : n + m]), k)
    b3 = b.expand(*shape, *sb[n:]).reshape(math.prod(shape), k, math.prod(sb[n + s :]))
    out: Any = a3.bmm(b3)
    return out.reshape(*shape, *sa[n : n + m], *sb[n + s :]), batch + left + right


def _broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(max(p, q) if 0 not in (p, q) else 0 for p, q in zip(a, b, strict=True))
