"""WG117: a gradient is read after the reset that emptied it."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.ledger.events import GradReset, GradWritten, Raised
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding
from whygrad.rules.numbers import say
from whygrad.rules.rule import Rule


class ReadAfterReset(Rule):
    """'NoneType' object has no attribute 'norm': the gradient is read after `zero_grad()`.

    `zero_grad()` sets `.grad` to None (since PyTorch 2.0; before, it filled it with zeros). Code that logs
    `p.grad.norm()` after the reset finds None.

    **How to put it right.** Read the gradients between `backward()` and `zero_grad()`, or keep zeros with
    `zero_grad(set_to_none=False)`.
    """

    code = "WG117"
    slug = "read-after-reset"
    search = (
        "AttributeError: 'NoneType' object has no attribute 'norm'",
        "AttributeError: 'NoneType' object has no attribute 'data'",
        "grad is None after zero_grad",
        "set_to_none",
    )
    wrong = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            model(torch.randn(8, 4)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()  # <- here
            print(model.weight.grad.norm())
        """,
    )
    right = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            model(torch.randn(8, 4)).square().mean().backward()
            optimizer.step()
            print(model.weight.grad.norm())
            optimizer.zero_grad()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        for raised in facts.of(Raised):
            place = facts.place(raised.site)
            text = facts.source(place.path).line(place.line) if place.path else ""
            if raised.kind.rpartition(".")[2] not in ("AttributeError", "TypeError") or "NoneType" not in raised.text:
                continue
            resets = [reset for reset in facts.of(GradReset) if reset.seq < raised.seq and reset.to == "none"]
            if (
                ".grad" not in text
                or not resets
                or any(write.seq > resets[-1].seq and write.seq < raised.seq for write in facts.of(GradWritten))
            ):
                continue
            named = [one for one in resets if f"{facts.name(one.tensor)}.grad" in text]
            reset = named[-1] if named else resets[-1]
            name = facts.describe(reset.tensor)
            yield self.finding(
                facts,
                facts.place(reset.site),
                "the gradients are reset before they are read",
                [
                    f"{reset.by} ({facts.place(reset.site).where}) set {name}.grad, {say(reset.before)}, to None; "
                    f"{place.where} read it after that: {raised.kind.rpartition('.')[2]}: {raised.text}.",
                ],
                why="zero_grad() sets .grad to None.",
                fix="Read the gradients before the reset, or use zero_grad(set_to_none=False).",
                evidence=[
                    facts.evidence(reset, f"{name}.grad was set to None"),
                    facts.evidence(raised, "it was read, and was None"),
                ],
                subjects=[name],
            )
            return
