"""WG206: a gradient goes into a loss, and was computed without create_graph."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygrad.ledger.events import Operation, TensorId
from whygrad.rules.facts import Facts, Pass
from whygrad.rules.finding import Edit, Finding, Severity
from whygrad.rules.rule import Rule
from whygrad.rules.syntax import callee
from whygrad.rules.terms import tensors_of, terms

COMBINES = frozenset({"add", "sub", "mul", "div", "neg", "pow", "square", "sum", "getitem", "mse_loss"})
"""Operations by which a derivative goes into the residual of an equation."""

FIRST_ORDER = ("first_order", "firstorder", "first-order", "fomaml", "reptile")


class InnerGradientWithoutGraph(Rule):
    """The gradient of a gradient is missing: autograd.grad was called without create_graph=True.

    A gradient penalty, a derivative in a physics loss, the inner step of MAML and a Hessian-vector product all put a
    gradient into a loss. Without `create_graph=True` that gradient is a constant: the penalty trains nothing, the
    meta-gradient is of first order only, and where nothing else carries a history, backward raises "element 0 of
    tensors does not require grad and does not have a grad_fn".

    **How to see it.** The result of `autograd.grad` has `requires_grad` False.

    **How to put it right.** `torch.autograd.grad(..., create_graph=True)`. For first-order MAML, write
    `create_graph=False`, so that a reader sees that it is meant.
    """

    code = "WG206"
    slug = "inner-gradient-without-graph"
    intended = "the first-order approximation is wanted; then write create_graph=False"
    search = (
        "create_graph missing", "gradient penalty has no effect", "MAML second order", "Hessian vector product zero",
        "second derivative does not require grad", "PINN autograd.grad",
    )  # fmt: skip
    explains = ("WG205", "WG201", "WG202", "WG203")
    wrong = (
        """
        import torch
        theta = torch.tensor([0.5, -1.0], requires_grad=True)
        x, y = torch.randn(6, 2), torch.randn(6)
        inner = (torch.tanh(x @ theta) - y).pow(2).mean()
        (g,) = torch.autograd.grad(inner, (theta,))  # <- here
        fast = theta - 0.1 * g
        outer = (torch.tanh(x @ fast) + y).pow(2).mean()
        outer.backward()
        """,
        """
        import torch
        critic = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
        optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
        for _ in range(3):
            real, fake = torch.randn(6, 3), torch.randn(6, 3)
            mixed = (real + fake).div(2).requires_grad_(True)
            slope = torch.autograd.grad(critic(mixed).sum(), mixed)[0]  # <- here
            penalty = (slope.norm(dim=1) - 1).pow(2).mean()
            loss = critic(fake).mean() - critic(real).mean() + 10 * penalty
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
        """
        import torch
        net = torch.nn.Sequential(torch.nn.Linear(1, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
        t = torch.linspace(0, 1, 9).unsqueeze(1).requires_grad_(True)
        u = net(t)
        u_t = torch.autograd.grad(u.sum(), t)[0]  # <- here
        loss = u_t.pow(2).mean()
        loss.backward()
        """,
    )
    right = (
        """
        import torch
        theta = torch.tensor([0.5, -1.0], requires_grad=True)
        x, y = torch.randn(6, 2), torch.randn(6)
        inner = (torch.tanh(x @ theta) - y).pow(2).mean()
        (g,) = torch.autograd.grad(inner, (theta,), create_graph=True)
        outer = (torch.tanh(x @ (theta - 0.1 * g)) + y).pow(2).mean()
        outer.backward()
        """,
        """
        import torch
        model = torch.nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x, y = torch.randn(6, 3), torch.randint(2, (6,))
        for _ in range(3):
            probe = x.clone().requires_grad_(True)
            loss = torch.nn.functional.cross_entropy(model(probe), y)
            slope = torch.autograd.grad(loss, probe)[0]
            attacked = x + 0.1 * slope.sign()
            loss = torch.nn.functional.cross_entropy(model(attacked), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        seen = set()
        for taken in facts.of(Operation):
            inner = _pass_of(facts, taken)
            if taken.cut != "grad" or inner is None or taken.site in seen or _said_so(facts, taken):
                continue
            for outer in facts.passes:
                if outer.began.seq > taken.seq and (what := _loses(facts, taken, inner, outer)):
                    seen.add(taken.site)
                    yield self._found(facts, taken, outer, what)
                    break

    def _found(self, facts: Facts, taken: Operation, outer: Pass, what: str) -> Finding:
        where = facts.place(outer.began.site).where
        error = outer.ended.error.partition(": ")[2].partition(".")[0] if outer.ended is not None else ""
        ended = f"The backward on {where} failed: {error}." if error else f"{what} (the backward on {where})."
        return self.finding(
            facts,
            facts.place(taken.site),
            "a gradient that goes into a loss was computed without create_graph",
            [
                f"`{facts.place(taken.site).code}` gave a gradient without history, and a loss was computed from it.",
                ended,
            ],
            why="Without create_graph=True a gradient is a constant: nothing can be differentiated through it.",
            fix="Pass create_graph=True to that autograd.grad.",
            evidence=[
                facts.evidence(taken, "autograd.grad, without create_graph, gave a gradient without history"),
                facts.evidence(outer.began, "a backward from a value that was computed from that gradient"),
            ],
            subjects=[facts.describe(one) for one in tensors_of(taken.inputs)],
            severity=None if error else Severity.WARNING,
            edits=_with_graph(facts, taken),
        )


def _pass_of(facts: Facts, taken: Operation) -> Pass | None:
    """The pass that gave the gradients of a call of autograd.grad."""
    before = [one for one in facts.passes if one.began.site == taken.site and one.began.seq < taken.seq]
    return before[-1] if before and before[-1].began.call == "autograd.grad" else None


def _said_so(facts: Facts, taken: Operation) -> bool:
    """Whether the call says that no graph is wanted."""
    if any(operand.keyword == "create_graph" for operand in taken.inputs):
        return True
    source = facts.source_of(taken.site)
    site = facts.site(taken.site)
    node = source.expression(site) if site is not None else None
    if isinstance(node, ast.Call) and any(word.arg in ("create_graph", None) for word in node.keywords):
        return True
    function = source.function_at(site.line) if site is not None else None
    around = source.segment(function) if function is not None else source.text
    return any(word in around.lower() for word in FIRST_ORDER)


def _loses(facts: Facts, taken: Operation, inner: Pass, outer: Pass) -> str:
    """How the outer pass misses what the gradient could have told it; empty where it does not."""
    flow = facts.flow
    if outer.began.create_graph and not outer.written and not outer.returned:
        return ""
    gradients = set(taken.outputs)
    direct = any(gradients & set(made.inputs) for root in outer.began.roots for _, made in flow.upstream(root))
    if not direct and not _in_graph(facts, gradients, outer):
        return ""
    error = outer.ended.error if outer.ended is not None else ""
    if "does not require grad" in error:
        return "it failed"
    if error:
        return ""
    asked = set(inner.began.inputs or ())
    got = {write.tensor for write in outer.written} | {back.tensor for back in outer.returned if back.value}
    both = asked & got
    if both and any(tensor in facts.trained or facts.owners.get(tensor) for tensor in both):
        return _first_order(facts, both)
    if both and _differentiates_itself(facts, taken, both):
        return _first_order(facts, both)
    for root in outer.began.roots:
        for term in terms(facts, root):
            if not flow.requires_grad(term.tensor) and _from(facts, term.tensor, gradients):
                return "The term that was computed from it is a constant there: no parameter gets a gradient from it"
    if _half_lost(facts, taken, inner):
        return "It was combined with values that carry a history; what goes through it is missing in their gradient"
    return ""


def _in_graph(facts: Facts, gradients: set[TensorId], outer: Pass) -> bool:
    """Whether something computed from the gradients has its node in the outer pass."""
    nodes = {node for root in outer.began.root_nodes for node in facts.reached(root)}
    computed = {one for gradient in gradients for one in facts.flow.computed_from(gradient)}
    return any(made.node in nodes for tensor in computed for made in facts.giving(tensor) if made.node is not None)


def _half_lost(facts: Facts, taken: Operation, inner: Pass) -> bool:
    """Whether the gradient by an input was combined with an output of the same network, as in a physics loss."""
    flow = facts.flow
    asked = set(inner.began.inputs or ())
    network = {
        edge.leaf for root in inner.began.root_nodes for node in facts.reached(root).values() for edge in node.edges
    }
    network &= set(facts.trained) | set(facts.owners)
    network -= asked
    if not network:
        return False
    queue = list(taken.outputs)
    for gradient in queue[:50]:
        for made in facts.users.get(gradient, ()):
            if not isinstance(made, Operation) or made.function not in COMBINES or not made.outputs:
                continue
            others = [one for one in tensors_of(made.inputs) if one != gradient]
            if not facts.flow.requires_grad(made.outputs[0]):
                queue.append(made.outputs[0])
                continue
            for other in others:
                behind = {one for _, how in flow.upstream(other) for one in how.inputs}
                if other not in asked and network & behind and not asked & {other}:
                    return True
    return False


def _first_order(facts: Facts, both: set[TensorId]) -> str:
    names = ", ".join(facts.describe(one) for one in sorted(both)[:3])
    return f"What the loss depends on {names} through that gradient is missing in the gradient of {names}"


def _differentiates_itself(facts: Facts, taken: Operation, both: set[TensorId]) -> bool:
    """Whether the gradient was combined with the very leaf that it belongs to (`theta - lr * g`), history kept."""
    flow = facts.flow
    for gradient in taken.outputs:
        for tensor in flow.computed_from(gradient):
            made = flow.maker(tensor)
            if made is not None and not made.cut and both & set(made.inputs) and flow.requires_grad(tensor):
                return True
    return False


def _from(facts: Facts, tensor: TensorId, gradients: set[TensorId]) -> bool:
    """Whether a tensor was computed from one of the gradients with no cut between."""
    queue, seen = [tensor], {tensor}
    for current in queue:
        if current in gradients:
            return True
        made = facts.flow.maker(current)
        if made is None or made.cut:
            continue
        for given in made.inputs:
            if given not in seen:
                seen.add(given)
                queue.append(given)
    return False


def _with_graph(facts: Facts, taken: Operation) -> tuple[Edit, ...]:
    site = facts.site(taken.site)
    if site is None:
        return ()
    source = facts.source(site.path)
    node = source.expression(site)
    if not isinstance(node, ast.Call) or callee(node) != "grad":
        return ()
    end = source.line(site.end_line)[: site.end_column]
    if not end.endswith(")"):
        return ()
    comma = "" if end[:-1].rstrip().endswith(("(", ",")) else ", "
    at = site.end_column - 1
    return (Edit(site.path, site.end_line, at, site.end_line, at, f"{comma}create_graph=True"),)
