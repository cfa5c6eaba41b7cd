"""WG216: a straight-through estimator without its detach."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.ledger.events import GradWritten, Operation, SiteId, TensorId
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Edit, Finding
from whygrad.rules.flow import is_zero
from whygrad.rules.rule import Rule
from whygrad.rules.terms import tensors_of

ADDS, SUBTRACTS = ("add", "torch.add"), ("sub", "torch.sub")


class StraightThroughCancels(Rule):
    """The straight-through trick gives a zero gradient: x + (quantized - x) without detach.

    The value of `x + (q - x)` is `q`, and the gradient is to be that of `x`. Without `.detach()` on the difference the
    two `x` cancel in the gradient too: the expression is just `q`, and `round()`, `sign()`, an `argmax` or a codebook
    lookup has no gradient for `x`. Everything before the quantizer gets zeros (or None), while the decoder learns.

    **How to see it.** The gradient of the encoder is a tensor of zeros.

    **How to put it right.** `x + (q - x).detach()`.
    """

    code = "WG216"
    slug = "straight-through-cancels"
    search = (
        "straight-through estimator zero gradient", "VQ-VAE encoder gradient zero", "gumbel straight through detach",
        "quantization aware training gradient", "round gradient zero",
    )  # fmt: skip
    explains = ("WG217", "WG203", "WG201", "WG205")
    wrong = (
        """
        import torch
        torch.manual_seed(0)
        encoder, decoder = torch.nn.Linear(3, 2), torch.nn.Linear(2, 3)
        x = torch.randn(5, 3)
        z = encoder(x)
        q = z + (torch.round(z) - z)  # <- here
        loss = (decoder(q) - x).pow(2).mean()
        loss.backward()
        """,
        """
        import torch
        torch.manual_seed(0)
        logits = torch.randn(4, 3, requires_grad=True)
        value = torch.randn(3, requires_grad=True)
        soft = logits.softmax(dim=1)
        hard = torch.nn.functional.one_hot(soft.argmax(dim=1), 3).float()
        choice = hard - soft + soft  # <- here
        loss = (choice @ value).pow(2).sum()
        loss.backward()
        """,
    )
    right = (
        """
        import torch
        torch.manual_seed(0)
        encoder, decoder = torch.nn.Linear(3, 2), torch.nn.Linear(2, 3)
        x = torch.randn(5, 3)
        z = encoder(x)
        q = z + (torch.round(z) - z).detach()
        loss = (decoder(q) - x).pow(2).mean()
        loss.backward()
        """,
        """
        import torch
        a = torch.randn(3, requires_grad=True)
        b = torch.randn(3, requires_grad=True)
        mixed = a + 0.3 * (b - a)
        mixed.pow(2).sum().backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        seen: set[SiteId | None] = set()
        for operation in facts.of(Operation):
            if operation.site in seen or operation.function not in ADDS + SUBTRACTS or operation.node is None:
                continue
            found = _cancelled(facts, operation)
            if found is not None:
                seen.add(operation.site)
                yield self._found(facts, operation, *found)

    def _found(self, facts: Facts, operation: Operation, difference: Operation, twice: TensorId) -> Finding:
        place = facts.place(operation.site)
        name = facts.describe(twice)
        zeros = [write for write in facts.of(GradWritten) if write.seq > operation.seq and is_zero(write.after)]
        happened = [
            f"`{place.code}` adds {name} and takes it away again, both with their history: for the gradient the two "
            "cancel exactly, and what is left has none for it."
        ]
        if zeros:
            names = ", ".join(dict.fromkeys(facts.describe(write.tensor) for write in zeros[:3]))
            happened.append(f"The gradient of {names} is exactly 0 in this run.")
        return self.finding(
            facts,
            place,
            f"{name} cancels out of the straight-through expression",
            happened,
            why="d(x + q - x)/dx is that of q alone; only a detached difference keeps the gradient of x.",
            fix=f"Detach the difference: `({facts.place(difference.site).code}).detach()`.",
            evidence=[
                facts.evidence(difference, f"subtracts {name}, with its history"),
                facts.evidence(operation, f"adds {name}, with its history"),
                *(facts.evidence(write, f"{facts.describe(write.tensor)}.grad is 0") for write in zeros[:2]),
            ],
            subjects=[name, *(facts.describe(write.tensor) for write in zeros)],
            edits=_detached(facts, difference),
        )


def _cancelled(facts: Facts, operation: Operation) -> tuple[Operation, TensorId] | None:
    """The difference in `x + (q - x)` or `x - (x - q)`, and x, if both carry a history."""
    given = tensors_of(operation.inputs)
    if len(given) != 2 or not all(facts.flow.requires_grad(one) for one in given):
        return None
    subtracting = operation.function in SUBTRACTS
    for difference, other in (given, given[::-1]):
        maker = facts.makers.get(difference)
        if not isinstance(maker, Operation) or maker.function not in SUBTRACTS or maker.node is None:
            continue
        sides = tensors_of(maker.inputs)
        if len(sides) != 2 or sides[0] == sides[1]:
            continue
        if not subtracting and sides[1] == other:
            return maker, other
        if subtracting and difference == given[1] and sides[0] == other:
            return maker, other
    return None


def _detached(facts: Facts, difference: Operation) -> tuple[Edit, ...]:
    site = facts.site(difference.site)
    if site is None:
        return ()
    source = facts.source(site.path)
    before = source.line(site.line)[: site.column].rstrip()
    after = source.line(site.end_line)[site.end_column :]
    if before.endswith("(") and after.startswith(")"):
        at = site.end_column + 1
        return (Edit(site.path, site.end_line, at, site.end_line, at, ".detach()"),)
    return (
        Edit(site.path, site.line, site.column, site.line, site.column, "("),
        Edit(site.path, site.end_line, site.end_column, site.end_line, site.end_column, ").detach()"),
    )
