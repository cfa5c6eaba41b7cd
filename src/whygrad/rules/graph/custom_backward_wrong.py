"""WG218: the backward of a custom Function is not the derivative of its forward."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import msgspec

from whygrad.ledger.events import GradWritten, Named, Node, Operation, Site, TensorId
from whygrad.ledger.values import Value
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding, Place
from whygrad.rules.replays import function_of, items, slopes
from whygrad.rules.rule import Rule
from whygrad.rules.source import Source
from whygrad.rules.terms import tensors_of

DELIBERATE = frozenset({
    "round", "sign", "floor", "ceil", "trunc", "clamp", "clip", "gt", "lt", "ge", "le", "eq", "ne", "argmax", "where",
    "bernoulli", "heaviside", "hardtanh", "topk", "one_hot", "detach", "clone", "view_as", "view", "long", "int",
})  # fmt: skip
"""Forwards with these have a surrogate gradient on purpose."""

TOLERANCE = 0.02


class CustomBackwardWrong(Rule):
    """The gradient of a custom autograd.Function is wrong, or None.

    Autograd trusts `backward`: it multiplies nothing, checks nothing. A forgotten factor, a wrong saved tensor, a
    missing multiplication with the incoming gradient, or `None` for an input that needs one gives wrong numbers in
    silence. A straight-through or surrogate gradient, and a gradient reversal, differ on purpose; forwards that round,
    compare, clamp or return their input are therefore left alone.

    **How to see it.** `torch.autograd.gradcheck(F.apply, inputs)` in float64, or finite differences of the recorded
    forward, as here.

    **How to put it right.** Return incoming gradient times derivative for each input, in the order of forward's
    parameters.
    """

    code = "WG218"
    slug = "custom-backward-wrong"
    explains = ("WG202", "WG217")
    intended = "the gradient is a surrogate"
    search = (
        "custom autograd.Function wrong gradient", "gradcheck custom Function", "backward returns None",
        "autograd.Function gradient incorrect",
    )  # fmt: skip
    wrong = (
        """
        import torch
        class Cube(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x * x
            @staticmethod
            def backward(ctx, grad):
                (x,) = ctx.saved_tensors
                return grad * 2 * x * x  # <- here
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        Cube.apply(x).sum().backward()
        """,
        """
        import torch
        class Product(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, w):
                ctx.save_for_backward(x, w)
                return x * w
            @staticmethod
            def backward(ctx, grad):
                x, w = ctx.saved_tensors
                return grad * w, None  # <- here
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        w = torch.tensor([3.0, 4.0], requires_grad=True)
        Product.apply(x, w).sum().backward()
        """,
    )
    right = (
        """
        import torch
        class Cube(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x * x
            @staticmethod
            def backward(ctx, grad):
                (x,) = ctx.saved_tensors
                return grad * 3 * x * x
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        Cube.apply(x).sum().backward()
        """,
        """
        import torch
        class Rounded(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return torch.round(x)
            @staticmethod
            def backward(ctx, grad):
                return grad
        class Reversed(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.view_as(x)
            @staticmethod
            def backward(ctx, grad):
                return -grad
        x = torch.tensor([1.2, 2.0], requires_grad=True)
        Reversed.apply(Rounded.apply(x)).sum().backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        seen = set()
        for node in facts.of(Node):
            name = node.name.removesuffix("Backward")
            if name == node.name or name in seen:
                continue
            custom = _custom(facts, node, name)
            if custom is None:
                continue
            seen.add(name)
            found = self._missing(facts, node, custom) or self._wrong(facts, node, custom)
            if found is not None:
                yield found

    def _missing(self, facts: Facts, node: Node, custom: Custom) -> Finding | None:
        """None is returned for an input that is to get a gradient."""
        for index, edge in enumerate(node.edges):
            result = custom.results[index] if index < len(custom.results) else None
            none = isinstance(result, ast.Constant) and result.value is None
            if not none or (edge.leaf is None and edge.node is None):
                continue
            given = edge.leaf if edge.leaf is not None else None
            if given is not None and given in facts.reached_leaves:
                continue
            what = facts.describe(given) if given is not None else f"input {index + 1}"
            return self.finding(
                facts,
                custom.place,
                f"{custom.name}.backward returns None for {what}, which requires grad",
                [
                    f"`{custom.name}.apply` on {facts.place(node.site).where} was given {what}, which requires grad; "
                    f"result {index + 1} of backward is None, so nothing goes back to it.",
                ],
                why="Autograd takes what backward returns; None means no gradient.",
                fix="Return the gradient for that input: the incoming gradient times the derivative.",
                evidence=[facts.evidence(node, f"{node.name} has an edge to {what}")],
                subjects=[what],
            )
        return None

    def _wrong(self, facts: Facts, node: Node, custom: Custom) -> Finding | None:
        forward = function_of(facts, custom.inputs, custom.output, custom.called.seq)
        incoming = items(custom.incoming)
        if forward is None or _deliberate(forward.steps):
            return None
        if incoming is None:
            began = next((one.began for one in facts.passes if node.id in facts.reached(one.began.root_nodes[0])), None)
            forward = function_of(facts, custom.inputs, began.roots[0], began.seq) if began is not None else None
            incoming = [1.0]
            if forward is None or began is None or began.gradient is not None:
                return None
        for index, given in enumerate(custom.inputs):
            got = items(_outgoing(facts, node, custom, index))
            expected = slopes(forward, given, incoming) if got is not None else None
            if got is None or expected is None or len(got) != len(expected):
                continue
            worst = max(range(len(got)), key=lambda at: abs(got[at] - expected[at]))
            scale = max(1e-6, *(abs(one) for one in expected), *(abs(one) for one in got))
            if abs(got[worst] - expected[worst]) <= TOLERANCE * scale:
                continue
            what = facts.describe(given)
            return self.finding(
                facts,
                custom.place,
                f"{custom.name}.backward is not the derivative of its forward",
                [
                    f"For element {worst} of {what}, {custom.name}.backward gave {got[worst]:.4g}; differences of the "
                    f"recorded forward, in float64, give {expected[worst]:.4g}.",
                ],
                why="Autograd uses what backward returns and checks nothing.",
                fix="Correct the formula, and hold it with torch.autograd.gradcheck in float64.",
                evidence=[
                    facts.evidence(custom.called, f"the forward of {custom.name}"),
                    facts.evidence(node, f"{node.name} calls the backward of {custom.name}"),
                ],
                subjects=[what],
            )
        return None


class Custom(msgspec.Struct, frozen=True, eq=False):
    """A call of a custom Function: its inputs and output, what its backward was given, and what that returns."""

    name: str
    called: Operation
    inputs: tuple[TensorId, ...]
    output: TensorId
    incoming: Value | None
    source: Source
    results: tuple[ast.expr, ...]
    place: Place


def _custom(facts: Facts, node: Node, name: str) -> Custom | None:
    """The user's Function whose backward a node calls."""
    called = next((one for one in facts.of(Operation) if one.node == node.id and one.outputs), None)
    if called is None:
        return None
    for path in facts.ledger.sources():
        source = facts.source(path)
        for found in ast.walk(source.tree):
            if isinstance(found, ast.ClassDef) and found.name == name:
                backward = next(
                    (one for one in found.body if isinstance(one, ast.FunctionDef) and one.name == "backward"), None
                )
                returns = [one for one in ast.walk(backward) if isinstance(one, ast.Return)] if backward else []
                if backward is None or len(returns) != 1 or returns[0].value is None or len(backward.args.args) != 2:
                    return None
                value = returns[0].value
                results = tuple(value.elts) if isinstance(value, ast.Tuple) else (value,)
                incoming = _given(facts, f"{name}.backward", backward.args.args[1].arg, called.seq)
                place = facts.line(path, returns[0].lineno)
                inputs = tuple(tensors_of(called.inputs))
                return Custom(name, called, inputs, called.outputs[0], incoming, source, results, place)
    return None


def _given(facts: Facts, scope: str, name: str, after: int) -> Value | None:
    """The value of a parameter of a function when it was next called."""
    named = next((one for one in facts.of(Named) if one.scope == scope and one.name == name and one.seq > after), None)
    return facts.value(named.tensor) if named is not None else None


def _outgoing(facts: Facts, node: Node, custom: Custom, index: int) -> Value | None:
    """The gradient that the backward returned for an input: as a leaf got it, or as the returned expression gave it."""
    edge = node.edges[index] if index < len(node.edges) else None
    if edge is not None and edge.leaf is not None:
        for write in facts.of(GradWritten):
            if write.tensor == edge.leaf:
                for part in write.contributions:
                    if part.node == node.id:
                        return part.value
    if index >= len(custom.results):
        return None
    wanted = custom.results[index]
    for site in facts.of(Site):
        if site.line == wanted.lineno and custom.source.expression(site) is wanted:
            made = [one for one in facts.of_site(site.id) if one.seq > custom.called.seq]
            return made[0].value if made else None
    return None


def _deliberate(steps: tuple[Operation, ...]) -> bool:
    return not steps or any(one.function.rpartition(".")[2].strip("_") in DELIBERATE for one in steps)
