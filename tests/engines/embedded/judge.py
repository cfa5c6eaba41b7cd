"""The judge: a program run on real PyTorch and on the embedded engine, and what each said."""

from __future__ import annotations

import contextlib
import io
import re
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whygrad.engines.embedded.errors import NotInEmbeddedEngine
from whygrad.engines.embedded.install import answering_to_torch

PROGRAMS = Path(__file__).parent / "programs"
_NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?")


@dataclass(frozen=True)
class Outcome:
    """Everything a program showed: output, exception (type and text), warnings with their lines."""

    printed: str
    raised: tuple[str, str] | None
    warned: tuple[tuple[str, str, int], ...]


def run_on_pytorch(code: str) -> Outcome:
    import torch

    torch.manual_seed(0)
    torch.set_grad_enabled(True)
    torch.set_warn_always(True)  # as in a process of its own: what is said once was not said by another test
    try:
        return _run(code)
    finally:
        torch.set_warn_always(False)


def run_on_embedded(code: str) -> Outcome:
    from whygrad.engines.embedded import torch as embedded
    from whygrad.engines.embedded import warn

    warn._said.clear()
    embedded.manual_seed(0)
    embedded.set_grad_enabled(True)
    with answering_to_torch():
        return _run(code)


def _run(code: str) -> Outcome:
    out = io.StringIO()
    raised = None
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(out):
        warnings.simplefilter("always")
        try:
            exec(compile(code, "<program>", "exec"), {"__name__": "__main__"})
        except NotInEmbeddedEngine:
            raise
        except Exception as error:
            raised = (type(error).__name__, str(error))
            traceback.clear_frames(error.__traceback__)
    warned = tuple(
        (w.category.__name__, _text(str(w.message)), w.lineno if w.filename == "<program>" else 0) for w in caught
    )
    return Outcome(re.sub(r"0x[0-9a-f]+", "0x", out.getvalue()), raised, warned)


def _text(message: str) -> str:
    message = re.sub(r" \(Triggered internally at.*?\)\.?", "", message, flags=re.DOTALL).strip()
    return re.sub(r"Traceback of forward call.*", "", message, flags=re.DOTALL)


def close(a: str, b: str, rtol: float = 1e-5, atol: float = 1e-6) -> bool:
    """Whether two texts are the same but for the last digits of their numbers."""
    if a == b:
        return True
    numbers_a, numbers_b = _NUMBER.findall(a), _NUMBER.findall(b)
    if _NUMBER.sub("#", a) != _NUMBER.sub("#", b) or len(numbers_a) != len(numbers_b):
        return False
    printed = 1.01e-4  # four digits are shown: the last one may round the other way
    return all(
        abs(float(x) - float(y)) <= max(atol, rtol * abs(float(x)), printed if "." in x else 0)
        for x, y in zip(numbers_a, numbers_b, strict=True)
    )


def warnings_agree(real: Outcome, ours: Outcome) -> bool:
    """Same kinds and texts, first said at the same lines where PyTorch names the program's line.

    How often a text is said is not compared: PyTorch says some once in a process.
    """
    a, b = _firsts(real), _firsts(ours)
    return a.keys() == b.keys() and all(a[said] in (0, b[said]) for said in a)


def _firsts(outcome: Outcome) -> dict[tuple[str, str], int]:
    lines: dict[tuple[str, str], int] = {}
    for category, text, line in outcome.warned:
        lines.setdefault((category, text), line)
    return lines


def battery(name: str) -> Iterator[tuple[str, str]]:
    """The programs of a file: a common beginning, then one program after each `#---`."""
    first, *programs = (PROGRAMS / f"{name}.txt").read_text().split("#---\n")
    for number, program in enumerate(programs):
        yield f"{name}-{number}", first + program


def to_embedded(value: Any) -> Any:
    """Tensors of PyTorch, at any depth, as tensors of the embedded engine; `requires_grad` is kept."""
    import numpy as np
    import torch

    from whygrad.engines.embedded import torch as embedded
    from whygrad.engines.embedded.tensor import wrap

    if isinstance(value, torch.Tensor):
        a = np.array(value.detach().cpu().numpy(), order="K")
        out = wrap(a if a.ndim else a[()], getattr(embedded, str(value.dtype).removeprefix("torch.")))
        return out.requires_grad_(value.requires_grad)
    if isinstance(value, torch.dtype):
        return getattr(embedded, str(value).removeprefix("torch."))
    if isinstance(value, torch.Size):
        return tuple(value)
    if isinstance(value, (list, tuple)):
        return type(value)(to_embedded(v) for v in value)
    if isinstance(value, dict):
        return {k: to_embedded(v) for k, v in value.items()}
    return str(value) if isinstance(value, torch.device) else value


def flat(value: Any) -> list[Any]:
    """All tensors and numbers of a nested value, in order."""
    if isinstance(value, (list, tuple)):
        return [leaf for v in value for leaf in flat(v)]
    return [value]
