"""WG214: the named tensor is not the leaf: an operation after requires_grad=True made another one."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.ledger.events import Named, Operation, Raised, Tensor, Warned
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding, Severity
from whygrad.rules.rule import Rule
from whygrad.rules.terms import tensors_of

READ = "is not a leaf Tensor is being accessed"
OPTIMIZED = "can't optimize a non-leaf Tensor"


class NotALeaf(Rule):
    """x.grad is None and PyTorch warns: the tensor is not a leaf.

    Only leaves get their gradient in `.grad`. `torch.ones(2, requires_grad=True).double()`, `.to(device)`, `.cuda()`,
    `* 0.1` or `.reshape(...)` give the *result* of an operation: the leaf is the tensor before it, which has no name
    any more, and its `.grad` is written where nobody reads it. An optimizer refuses such a tensor with "can't optimize
    a non-leaf Tensor". For an intermediate result, `retain_grad()` before the backward keeps the gradient.

    **How to see it.** `x.is_leaf` is False.

    **How to put it right.** Create the tensor with the dtype, device and scale that it is to have, and call
    `.requires_grad_()` last.
    """

    code = "WG214"
    slug = "not-a-leaf"
    search = (
        "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed",
        "can't optimize a non-leaf Tensor",
        "grad None after .to(device)", "retain_grad",
    )  # fmt: skip
    wrong = (
        """
        import torch
        w = torch.ones(3, requires_grad=True) * 0.1  # <- here
        loss = (w * 2).sum()
        loss.backward()
        g = w.grad
        """,
        """
        import torch
        x = torch.ones(3, requires_grad=True)
        h = x * 2
        h.sum().backward()
        print(h.grad)  # <- here
        """,
    )
    right = (
        """
        import torch
        w = (torch.ones(3) * 0.1).requires_grad_()
        h = w * 2
        h.retain_grad()
        h.sum().backward()
        g, k = w.grad, h.grad
        """,
        """
        import torch
        t = torch.linspace(0, 1, 5, requires_grad=True).unsqueeze(1)
        slope = torch.autograd.grad((t * t).sum(), t)[0]
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        told: list[Warned | Raised] = [*facts.of(Warned), *facts.of(Raised)]
        for event in told:
            if READ not in event.text and OPTIMIZED not in event.text:
                continue
            made = self._renamed(facts, event)
            yield self._made(facts, event, made) if made is not None else self._read(facts, event)

    def _renamed(self, facts: Facts, event: Warned | Raised) -> Operation | None:
        """The operation that took a leaf without a name, made to require grad, to the tensor that has the name."""
        code = facts.place(event.site).code
        line = facts.place(event.site)
        text = code + facts.source(line.path).line(line.line)
        for named in reversed(facts.of(Named)):
            if named.seq > event.seq or named.name.endswith(".grad") or named.name not in text:
                continue
            made = facts.makers.get(named.tensor)
            known = facts.tensors.get(named.tensor)
            if not isinstance(made, Operation) or known is None or known.leaf:
                continue
            given = [facts.tensors[one] for one in tensors_of(made.inputs) if one in facts.tensors]
            if any(_fresh(facts, tensor, made) for tensor in given):
                return made
            if READ in event.text:
                return None
        return None

    def _made(self, facts: Facts, event: Warned | Raised, made: Operation) -> Finding:
        name = facts.describe(made.outputs[0])
        place = facts.place(made.site)
        told = "reading its .grad gave None" if isinstance(event, Warned) else f"PyTorch said: {event.text}"
        return self.finding(
            facts,
            place,
            f"{name} is not a leaf: `{made.function}` made another tensor after requires_grad was set",
            [
                f"The tensor that requires grad was an input of `{place.code}` and has no name; {name} is the result.",
                f"On {facts.place(event.site).where}, {told}.",
            ],
            why="Backward writes .grad of leaves only, and the result of an operation is no leaf.",
            fix="Convert and scale first, and call .requires_grad_() last.",
            evidence=[
                facts.evidence(made, f"{name} is the result of {made.function}"),
                facts.evidence(event, "PyTorch said that it is no leaf"),
            ],
            subjects=[name],
        )

    def _read(self, facts: Facts, event: Warned | Raised) -> Finding:
        place = facts.place(event.site)
        return self.finding(
            facts,
            place,
            "the .grad of a tensor that is not a leaf is read, and is None"
            if isinstance(event, Warned)
            else "an optimizer is given a tensor that is not a leaf",
            [f"PyTorch said on {place.where}: {event.text.partition('. ')[0]}."],
            why="Backward keeps gradients of leaves only; what is between is freed.",
            fix="Call retain_grad() on it before the backward, or take the gradient with autograd.grad.",
            evidence=[facts.evidence(event, "PyTorch warned" if isinstance(event, Warned) else "PyTorch refused")],
            severity=Severity.WARNING if isinstance(event, Warned) else None,
        )


def _fresh(facts: Facts, tensor: Tensor, made: Operation) -> bool:
    """Whether it is a leaf that requires grad, has no name, and was used by that operation alone."""
    alone = all(user is made for user in facts.users.get(tensor.id, ()))
    return tensor.leaf and facts.flow.requires_grad(tensor.id) and not facts.ledger.names(tensor.id) and alone
