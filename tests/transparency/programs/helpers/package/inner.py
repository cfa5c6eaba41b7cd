from __future__ import annotations

__all__ = ["exported_one", "exported_two"]

exported_one = [n * 2 for n in range(3)]
exported_two: int = sum(exported_one)
_hidden = 1


def value(x: int = 1 + 1) -> list[int]:
    from .. import facts

    return [facts.function(x), _hidden]
