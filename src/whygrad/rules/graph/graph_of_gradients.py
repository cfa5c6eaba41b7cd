"""WG223: backward(create_graph=True), and nobody differentiates the gradients."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.ledger.events import Tensor, TensorId
from whygrad.rules.facts import Facts, Pass
from whygrad.rules.finding import Finding, Severity
from whygrad.rules.rule import Rule


class GraphOfGradients(Rule):
    """Memory leak: backward(create_graph=True) makes .grad carry a graph.

    With `create_graph=True` the gradients have a history of their own, and `.grad` holds the parameter's gradient,
    whose graph holds the parameter: a cycle that is not freed until `.grad` is reset to None. PyTorch warns: "Using
    backward() with create_graph=True will create a reference cycle between the parameter and its gradient".

    **How to put it right.** Leave it out where no second derivative is wanted. Where one is, use
    `torch.autograd.grad(loss, parameters, create_graph=True)`, which keeps the gradients apart.
    """

    code = "WG223"
    slug = "graph-of-gradients"
    severity = Severity.NOTE
    search = (
        "create a reference cycle between the parameter and its gradient", "create_graph=True memory leak",
        "grad has grad_fn",
    )  # fmt: skip
    wrong = (
        """
        import torch
        w = torch.ones(3, requires_grad=True)
        (w ** 3).sum().backward(create_graph=True)  # <- here
        print(w.grad)
        """,
    )
    right = (
        """
        import torch
        w = torch.ones(3, requires_grad=True)
        g = torch.autograd.grad((w ** 3).sum(), w, create_graph=True)[0]
        g.pow(2).sum().backward()
        """,
        """
        import torch
        w = torch.ones(3, requires_grad=True)
        (w ** 3).sum().backward(create_graph=True)
        g = w.grad
        w.grad = None
        g.pow(2).sum().backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        seen = set()
        for entry in facts.passes:
            began = entry.began
            if began.call == "backward" and began.create_graph and began.site not in seen:
                seen.add(began.site)
                if not self._differentiated(facts, entry):
                    yield self._found(facts, entry)

    def _differentiated(self, facts: Facts, entry: Pass) -> bool:
        """Whether a later pass starts from something that was computed from a buffer with a history."""
        buffers = {one.id for one in facts.of(Tensor) if one.origin == "grad" and one.requires_grad}
        later = [root for other in facts.passes if other.began.seq > entry.began.seq for root in other.began.roots]
        return any(current in buffers for root in later for current in (root, *_behind(facts, root)))

    def _found(self, facts: Facts, entry: Pass) -> Finding:
        return self.finding(
            facts,
            facts.place(entry.began.site),
            "create_graph=True gives .grad a graph that nothing differentiates",
            [
                f"The backward wrote {len(entry.written)} buffers, each with a history of its own; no later pass of "
                "this run goes through them."
            ],
            why="The gradient's graph holds the parameter and the parameter holds the gradient: a reference cycle.",
            fix="Leave create_graph=True out, or use autograd.grad for the second derivative.",
            evidence=[facts.evidence(entry.began, "a backward with create_graph=True")],
        )


def _behind(facts: Facts, root: TensorId) -> Iterator[TensorId]:
    for _, made in facts.flow.upstream(root):
        yield from made.inputs
