"""WG702: an input has another dtype than the weights."""

from __future__ import annotations

import re
from collections.abc import Iterator

from whygrad.ledger.events import ModuleCalled, Operation, Raised, TensorId
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Edit, Finding, Place
from whygrad.rules.rule import Rule
from whygrad.rules.terms import tensors_of

TEXTS = re.compile(
    r"must have the same dtype|does not match weight dtype"
    r"|expected scalar type|Found dtype|expected m1 and m2 to have the same dtype"
    r"|expected target dtype|Input type .* and (?:weight|bias) type|expected dtype"
    r"|not implemented for '|result type .* can't be cast"
)
NAMES = {
    "Double": "float64", "Float": "float32", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64", "Int": "int32",
    "Byte": "uint8", "Bool": "bool",
}  # fmt: skip
CONVERSIONS = {
    "float32": "float()",
    "float64": "double()",
    "float16": "half()",
    "bfloat16": "bfloat16()",
    "int64": "long()",
}


class DtypeMismatch(Rule):
    """mat1 and mat2 must have the same dtype, but got Double and Float: the data is float64 and the model float32.

    NumPy's default float is float64, and `torch.from_numpy` and `torch.tensor(array)` keep it; PyTorch's layers are
    float32. Other spellings: "expected scalar type Float but found Double", "Found dtype Double but expected Float",
    "Input type (double) and bias type (float) should be the same", and "expected scalar type Long but found Float" for
    class labels.

    **How to see it.** `x.dtype` and `next(model.parameters()).dtype` differ.

    **How to put it right.** Convert where the tensor is made: `torch.from_numpy(x).float()`, labels with `.long()`; or
    the model, `model.double()`.
    """

    code = "WG702"
    slug = "dtype-mismatch"
    search = (
        "mat1 and mat2 must have the same dtype, but got Double and Float",
        "expected scalar type Float but found Double",
        "Found dtype Double but expected Float", "expected scalar type Long but found Float",
    )  # fmt: skip
    wrong = (
        """
        import torch
        model = torch.nn.Linear(3, 2)
        x = torch.ones(4, 3, dtype=torch.float64)  # <- here
        model(x).sum().backward()
        """,
    )
    right = (
        """
        import torch
        model = torch.nn.Linear(3, 2)
        x = torch.ones(4, 3, dtype=torch.float64).float()
        model(x).sum().backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        for raised in facts.of(Raised):
            if raised.caught is None and TEXTS.search(raised.text):
                odd = _odd(facts, raised)
                if odd is not None:
                    yield self._found(facts, raised, *odd)

    def _found(self, facts: Facts, raised: Raised, tensor: TensorId, wanted: str, taker: str) -> Finding:
        dtype = facts.tensors[tensor].dtype
        name = facts.describe(tensor)
        place = _became(facts, tensor, dtype) or facts.place(raised.site)
        where = facts.place(raised.site).where
        return self.finding(
            facts,
            place,
            f"{name} is {dtype}, and {taker} is {wanted}",
            [f"`{place.code}` made it {dtype}; on {where} PyTorch raised: {raised.text.splitlines()[0]}."],
            why="PyTorch does not convert between dtypes in a layer: an input must have the dtype of the weights.",
            fix=f"Convert it where it is made: .{CONVERSIONS.get(wanted, f'to(torch.{wanted})')}.",
            evidence=[facts.evidence(raised, "PyTorch refused the two dtypes"),
                      facts.evidence(facts.tensors[tensor], f"{name} is {dtype}")],
            subjects=[name],
            edits=_converted(facts, place, wanted),
        )  # fmt: skip


def _odd(facts: Facts, raised: Raised) -> tuple[TensorId, str, str] | None:
    """The tensor whose dtype does not fit: the dtype that was wanted, and by what."""
    words = [NAMES[word] for word in re.findall(r"\b(Double|Float|Half|BFloat16|Long|Int|Byte|Bool)\b", raised.text)]
    failed = [call for call in facts.of(ModuleCalled) if call.error and raised.text[:40] in call.error]
    for call in failed:
        module = facts.modules.get(call.module)
        dtypes = {facts.tensors[one].dtype for _, one in (module.parameters if module else ())}
        for shape in call.inputs:
            if shape.tensor is not None and len(dtypes) == 1 and shape.dtype not in dtypes:
                who = (module.path or module.kind) if module is not None else "the layer"
                return shape.tensor, dtypes.pop(), who
    line = facts.place(raised.site)
    code = line.code + " " + facts.source(line.path).line(line.line)
    named = [
        found[0]
        for name in re.findall(r"[A-Za-z_][\w.]*", code)
        if (found := facts.ledger.find(name, line.line, line.path))
    ]
    given = [shape.tensor for call in failed for shape in call.inputs if shape.tensor is not None]
    recent = [
        one
        for operation in facts.of(Operation)
        if operation.site is not None and facts.place(operation.site).line == line.line
        for one in (*tensors_of(operation.inputs), *operation.outputs)
    ]
    failing = [one for one in facts.passes if one.ended is not None and raised.text[:40] in one.ended.error]
    recent += [
        tensor
        for entry in failing
        for root in entry.began.roots
        for _, made in facts.flow.upstream(root)
        for tensor in made.inputs
        if tensor in facts.tensors and not facts.flow.requires_grad(tensor)
    ]
    default = facts.default_dtype
    for tensor in dict.fromkeys([*given, *named, *recent]):
        dtype = facts.tensors[tensor].dtype
        if dtype in words and dtype != default and len(set(words)) == 2:
            wanted = next(word for word in words if word != dtype)
            if dtype.startswith("float") and wanted.startswith("float"):
                return tensor, wanted, "what it meets"
    taken = re.findall(r"[A-Za-z_][\w.]*", line.code.rpartition(",")[2])
    labels = [found[0] for name in taken if (found := facts.ledger.find(name, line.line, line.path))]
    for tensor in dict.fromkeys([*labels, *given, *named]):
        dtype = facts.tensors[tensor].dtype
        if "int64" in words and dtype in words and dtype != "int64" and not facts.flow.requires_grad(tensor):
            return tensor, "int64", "what takes it"
    return None


def _became(facts: Facts, tensor: TensorId, dtype: str) -> Place | None:
    """The line where the value got its dtype: the first of its ancestors along tensors of the same dtype."""
    current = tensor
    for _ in range(50):
        maker = facts.makers.get(current)
        if not isinstance(maker, Operation):
            break
        same = [one for one in tensors_of(maker.inputs) if one in facts.tensors and facts.tensors[one].dtype == dtype]
        if not same:
            return facts.place(maker.site)
        current = same[0]
    known = facts.tensors.get(current)
    return facts.place(known.site) if known is not None and known.site is not None else None


def _converted(facts: Facts, place: Place, wanted: str) -> tuple[Edit, ...]:
    """`.float()` after the expression that made it."""
    site = facts.site(place.site)
    if site is None or wanted not in CONVERSIONS or not site.code.endswith(")"):
        return ()
    text = f".{CONVERSIONS[wanted]}"
    return (Edit(site.path, site.end_line, site.end_column, site.end_line, site.end_column, text),)
