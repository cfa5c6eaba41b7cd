"""WG901: an operation that returns a new tensor stands alone on its line."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygrad.ledger.events import Operation, SiteId
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Edit, Finding, Severity
from whygrad.rules.numbers import say
from whygrad.rules.rule import Rule
from whygrad.rules.source import Source
from whygrad.rules.syntax import callee, dotted, function_of, replace

IN_PLACE = frozenset(
    {"abs", "add", "addcdiv", "addcmul", "atan", "ceil", "clamp", "clamp_max", "clamp_min", "clip", "copysign",
     "cos", "div", "divide", "erf", "exp", "fill", "floor", "fmod", "index_add", "index_copy", "index_fill",
     "index_put", "lerp", "log", "masked_fill", "masked_scatter", "mul", "multiply", "nan_to_num", "neg", "pow",
     "reciprocal", "relu", "renorm", "round", "rsqrt", "scatter", "scatter_add", "scatter_reduce", "sigmoid",
     "sign", "sin", "softmax", "sqrt", "square", "sub", "subtract", "t", "tanh", "transpose", "tril", "triu",
     "trunc", "squeeze", "unsqueeze", "detach", "log1p", "expm1", "bernoulli", "zero", "addmm"}
)  # fmt: skip
"""Methods and functions whose in-place twin has an underscore; alone on a line they do nothing."""

OUT_OF_PLACE = frozenset(
    {"to", "cuda", "cpu", "float", "double", "half", "bfloat16", "long", "int", "bool", "type", "type_as",
     "view", "reshape", "permute", "flatten", "expand", "repeat", "contiguous", "swapaxes", "movedim", "roll",
     "flip", "normalize", "dropout", "softmax", "log_softmax", "one_hot", "pad", "where", "cat", "stack",
     "index_select", "gather"}
)  # fmt: skip
"""Methods and functions that only ever return a new tensor or view."""

TWINS = frozenset({"softmax"})


class ResultDropped(Rule):
    """A tensor method is called, its result is thrown away, and nothing changes.

    `x.clamp(0, 1)`, `grad.mul(0.5)`, `x.to(device)`, `mask.float()` and `x.view(-1)` return a new tensor and leave
    the old one as it is (`module.to(device)` is the exception: it changes the module). Alone on a line they have no
    effect: the gradient is not clipped, the tensor stays where it was.

    **How to put it right.** Assign the result (`x = x.clamp(0, 1)`), or use the in-place form with an underscore
    (`x.clamp_(0, 1)`).
    """

    code = "WG901"
    slug = "result-dropped"
    severity = Severity.WARNING
    search = (
        "x.to(device) does nothing",
        "grad.clamp has no effect",
        "p.grad.mul not changing gradient",
        "tensor not modified in place",
    )
    wrong = (
        """
        import torch
        weight = torch.tensor([3.0, -4.0], requires_grad=True)
        (weight ** 2).sum().backward()
        weight.grad.clamp(-1, 1)  # <- here
        with torch.no_grad():
            weight -= 0.1 * weight.grad
        """,
        """
        import torch
        x = torch.ones(2, 3)
        x.to(torch.float64)  # <- here
        print(x.dtype)
        """,
    )
    right = (
        """
        import torch
        model = torch.nn.Linear(3, 1)
        model.to("cpu")
        x = torch.ones(2, 3)
        x.clamp_(0, 0.5)
        model(x)
        x.sum()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        told: set[SiteId | None] = set()
        notebook = facts.ledger.header.kind not in ("", "script", "module")
        for event in facts.of(Operation):
            if event.in_place or not event.outputs or event.site in told:
                continue
            name = event.function.rpartition(".")[2]
            if name not in IN_PLACE and name not in OUT_OF_PLACE:
                continue
            told.add(event.site)
            site = facts.site(event.site)
            if site is None or notebook:
                continue
            source = facts.source(site.path)
            node = source.expression(site)
            parent = source.parents.get(node) if node is not None else None
            if not isinstance(parent, ast.Expr) or not isinstance(node, ast.Call) or callee(node) != name:
                continue
            if not _is_tried(source, parent) and event.inputs and event.inputs[0].tensor not in event.outputs:
                yield self._finding(facts, event, source, node, name)

    def _finding(self, facts: Facts, event: Operation, source: Source, node: ast.Call, name: str) -> Finding:
        tensor = event.inputs[0].tensor
        spelled = dotted(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        whose = spelled if spelled not in ("torch", "F", "nn.functional", "torch.nn.functional") else ""
        whose = whose or (facts.describe(tensor) if tensor is not None else "its input")
        twin = name in IN_PLACE and name not in TWINS
        values = f" ({say(event.value)})" if event.value is not None else ""
        return self.finding(
            facts,
            event.site if event.site is not None else facts.place(None),
            f"the result of {name}() is thrown away",
            [f"`{source.segment(node)}` returned a new tensor{values}; nothing keeps it, and {whose} is as it was."],
            why=f"{name}() is not an in-place method: it leaves its input alone.",
            fix=(f"Use {name}_(), or assign" if twin else "Assign") + " the result.",
            evidence=[facts.evidence(event, f"{name}() gave a new tensor; no name and no expression holds it")],
            subjects=[whose],
            edits=_edits(source, node, name, twin),
        )


def _is_tried(source: Source, node: ast.AST) -> bool:
    """Whether a statement stands where its failing is the point: in `try` or in a `with` that expects an error."""
    for outer in source.around(node):
        if isinstance(outer, ast.Try):
            return True
        if isinstance(outer, ast.With) and any("raises" in source.segment(item.context_expr) for item in outer.items):
            return True
        if outer is function_of(source, node):
            return False
    return False


def _edits(source: Source, node: ast.Call, name: str, twin: bool) -> list[Edit]:
    if not isinstance(node.func, ast.Attribute):
        return []
    owner = source.segment(node.func.value)
    if owner in ("torch", "F", "nn.functional", "torch.nn.functional"):
        return []
    text = source.segment(node)
    if twin:
        place = text.rfind(f".{name}(", 0, len(owner) + len(name) + 2)
        return [replace(source, node, f"{text[:place]}.{name}_({text[place + len(name) + 2 :]}")] if place >= 0 else []
    return (
        [replace(source, node, f"{owner} = {text}")] if isinstance(node.func.value, (ast.Name, ast.Attribute)) else []
    )
