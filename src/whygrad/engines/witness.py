"""Two ledgers of one program, each from another engine: where do they differ?

Compared is what happened, event by event: ids only have to correspond, numbers may differ in their last digits, and
what only tells of the process (the environment, addresses in texts) is left out.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from whygrad.ledger import Ledger
from whygrad.ledger.events import Environment, Event, Site, Source

SLACK = {"float64": 1e-9, "complex128": 1e-9, "float16": 1e-2, "bfloat16": 4e-2}
"""How far numbers of a dtype may be apart, relative to the largest of them; others: `LOOSE`."""

LOOSE = 5e-4
"""Sums are taken in another order by each engine."""

TINY = 1e-5
"""Numbers this small count as zero: what is left where terms cancel is rounding."""

ALIGN_LIMIT = 20_000
"""Ledgers of more events than this are compared by position where their events differ in kind."""

_NAMESPACES = {
    "tensor": "tensor", "outputs": "tensor", "roots": "tensor", "leaf": "tensor", "leaves": "tensor",
    "skipped": "tensor", "parameters": "tensor", "written": "tensor", "wants": "tensor",
    "node": "node", "root_nodes": "node", "freed": "node", "blamed": "node",
    "module": "module", "optimizer": "optimizer", "backward": "backward", "freed_by": "backward",
}  # fmt: skip
_OWN = {
    "tensor": "tensor", "node": "node", "module": "module", "optimizer": "optimizer",
    "backward began": "backward", "backward ended": "backward",
}  # fmt: skip
_APART = frozenset({"seq", "event", "thread", "version", "version_before"})
_SITES = frozenset({"site", "caught", "written_by"})
_NUMBER = re.compile(r"(?<![\w.])-?(?:\d+\.?\d*(?:e[-+]?\d+)?|inf|nan)")
_ADDRESS = re.compile(r"0x[0-9a-f]+")


class Difference(msgspec.Struct, frozen=True):
    """One thing that the engines do not agree on. `what` names the event and the field, as `grad written.after`."""

    where: str
    what: str
    first: str
    second: str


def differences(first: Ledger, second: Ledger) -> Iterator[Difference]:
    """What differs, in the order of the first ledger."""
    return _Comparison(first, second).run()


class _Comparison:
    def __init__(self, first: Ledger, second: Ledger) -> None:
        self.first, self.second = first, second
        self.met: dict[str, tuple[dict[int, int], dict[int, int]]] = {}

    def run(self) -> Iterator[Difference]:
        ours, theirs = _told(self.first), _told(self.second)
        for mine, other in _aligned(ours, theirs):
            if mine is None or other is None:
                there = mine or other
                assert there is not None
                where, tag = _where(there), there["event"]
                yield Difference(where, tag, _brief(mine), _brief(other))
                continue
            for path, a, b in self._compare(mine["event"], mine, other, mine["event"]):
                yield Difference(_where(mine), path, _brief(a), _brief(b))

    def _compare(self, path: str, a: Any, b: Any, tag: str, key: str = "") -> Iterator[tuple[str, Any, Any]]:
        if isinstance(a, dict) and isinstance(b, dict):
            if "dtype" in a and "dtype" in b and "items" in a and "items" in b:
                if a["shape"] != b["shape"] or a["dtype"] != b["dtype"] or not _close(a["items"], b["items"], a):
                    yield path, _value(a), _value(b)
                return
            if tag == "node" and isinstance(a.get("saved"), list) and isinstance(b.get("saved"), list):
                a, b = _comparable(a, b)
            for name in (*a, *(name for name in b if name not in a)):
                if name not in _APART and (name, tag) != ("changed", "optimizer stepped"):  # the last bit of a weight
                    yield from self._compare(f"{path}.{name}", a.get(name), b.get(name), tag, name)
        elif isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
            if len(a) != len(b):
                yield path, a, b
                return
            for position, (mine, other) in enumerate(zip(a, b, strict=True)):
                yield from self._compare(f"{path}[{position}]", mine, other, tag, key)
        elif type(a) is int and type(b) is int and (space := self._space(tag, key)):
            if not self._correspond(space, a, b):
                yield path, f"{space} {a}", f"{space} {b}"
        elif not _same(a, b):
            yield path, a, b

    def _space(self, tag: str, key: str) -> str:
        if key == "id":
            return _OWN.get(tag, "")
        if key == "inputs" and tag == "backward began":
            return "tensor"
        return _NAMESPACES.get(key, "")

    def _correspond(self, space: str, a: int, b: int) -> bool:
        """Whether two ids mean the same; the first time that either is met they do."""
        forth, back = self.met.setdefault(space, ({}, {}))
        return forth.setdefault(a, b) == b and back.setdefault(b, a) == a


def _where(event: Mapping[str, Any]) -> str:
    place = event.get("place")
    return f"line {place[1]}" if place else ""


def _comparable(a: dict[str, Any], b: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two nodes, with what both are known to keep: engines keep other things for the same rule."""
    kept = [{one["slot"]: one for one in node["saved"] if one["tensor"] is not None} for node in (a, b)]
    both = sorted(kept[0].keys() & kept[1].keys())
    told = [[{**kept[side][slot], "version": 0} for slot in both] for side in (0, 1)]  # a count of writes is its own
    return {**a, "saved": told[0]}, {**b, "saved": told[1]}


def _told(ledger: Ledger) -> list[dict[str, Any]]:
    """The events as plain data, with places instead of sites."""
    told = []
    for event in ledger:
        if not isinstance(event, Site | Source | Environment):
            plain: dict[str, Any] = _placed(msgspec.to_builtins(event), ledger)
            plain["place"] = _place(event, ledger)
            if plain["event"] == "node":
                plain.setdefault("saved", [])
            told.append(plain)
    return told


def _place(event: Event, ledger: Ledger) -> tuple[Any, ...] | None:
    site = None if event.site is None else ledger.site(event.site)
    return None if site is None else (site.path, site.line, site.column, site.code)


def _placed(plain: Any, ledger: Ledger) -> Any:
    if isinstance(plain, dict):
        out = {}
        for key, value in plain.items():
            if key in _SITES and type(value) is int:
                site = ledger.site(value)  # type: ignore[arg-type]
                out[key] = None if site is None else [str(site.line), str(site.column), site.code]
            else:
                out[key] = _placed(value, ledger)
        return out
    if isinstance(plain, (list, tuple)):
        return [_placed(item, ledger) for item in plain]
    return plain


def _aligned(
    first: list[dict[str, Any]], second: list[dict[str, Any]]
) -> Iterator[tuple[dict[str, Any] | None, dict[str, Any] | None]]:
    """The events side by side; None where one ledger has nothing of the kind."""
    kinds = [[(event["event"], event["place"]) for event in told] for told in (first, second)]
    if kinds[0] == kinds[1] or max(len(first), len(second)) > ALIGN_LIMIT:
        for position in range(max(len(first), len(second))):
            a = first[position] if position < len(first) else None
            b = second[position] if position < len(second) else None
            yield (a, b) if a is None or b is None or a["event"] == b["event"] else (a, None)
        return
    for _, low, high, start, end in difflib.SequenceMatcher(None, kinds[0], kinds[1], autojunk=False).get_opcodes():
        if high - low == end - start and kinds[0][low:high] == kinds[1][start:end]:
            yield from zip(first[low:high], second[start:end], strict=True)
        else:
            yield from ((event, None) for event in first[low:high])
            yield from ((None, event) for event in second[start:end])


def _same(a: Any, b: Any) -> bool:
    if a is None or b is None or isinstance(a, bool) or isinstance(b, bool):
        return a is b or a == b
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return _near(float(a), float(b), LOOSE * max(abs(a), abs(b)) + TINY)
    if isinstance(a, str) and isinstance(b, str):
        return a == b or texts_agree(a, b)
    return bool(a == b)


def texts_agree(a: str, b: str) -> bool:
    """Whether two texts are the same but for addresses and the last digits of their numbers."""
    a, b = (_ADDRESS.sub("0x", text.split(" (Triggered internally")[0]) for text in (a, b))
    if a == b:
        return True
    ours, theirs = _NUMBER.findall(a), _NUMBER.findall(b)
    if len(ours) != len(theirs) or _words(a) != _words(b):
        return False
    return all(_number_texts(x, y) for x, y in zip(ours, theirs, strict=True))


def _words(text: str) -> str:
    return re.sub(r"\s+", " ", _NUMBER.sub("#", text))


def _number_texts(x: str, y: str) -> bool:
    if x == y:
        return True
    if not (_is_fraction(x) or _is_fraction(y)):
        return False
    a, b = float(x), float(y)
    shown = max(0.5 * 10.0 ** -min(_digits(x), _digits(y)), 0.0) * 2.1  # the last digit may round the other way
    return _near(a, b, max(LOOSE * max(abs(a), abs(b)), shown, TINY))


def _is_fraction(text: str) -> bool:
    return "." in text or "e" in text


def _digits(text: str) -> int:
    mantissa, _, exponent = text.partition("e")
    return len(mantissa.partition(".")[2]) - int(exponent or 0)


def _close(a: Any, b: Any, value: Mapping[str, Any]) -> bool:
    if a is None or b is None or len(a) != len(b):
        return a is b
    try:
        xs, ys = [complex(x) for x in a], [complex(y) for y in b]
    except (TypeError, ValueError):
        return bool(a == b)
    if not str(value["dtype"]).startswith(("float", "bfloat", "complex")):
        return bool(a == b)
    slack = SLACK.get(value["dtype"], LOOSE)
    largest = max((abs(x) for x in (*xs, *ys) if math.isfinite(abs(x))), default=0.0)
    reach = slack * largest + (TINY if slack >= LOOSE else TINY * TINY)
    return all(_near(x.real, y.real, reach) and _near(x.imag, y.imag, reach) for x, y in zip(xs, ys, strict=True))


def _near(a: float, b: float, reach: float) -> bool:
    return a == b or (a != a and b != b) or abs(a - b) <= reach


def _value(plain: Mapping[str, Any]) -> str:
    items = plain["items"]
    return f"{plain['dtype']} {tuple(plain['shape'])}" + (f" {list(items)}" if items is not None else "")


def _brief(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        kept = {k: v for k, v in value.items() if k not in ("seq", "event", "place", "site")}
        text = f"{value['event']} {kept}" if "event" in value else str(kept)
    else:
        text = str(value)
    return text if len(text) <= 200 else text[:197] + "..."
