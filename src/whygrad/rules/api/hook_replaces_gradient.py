"""WG906: a hook changes the gradient before it is written."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.ledger.events import GradWritten
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding, Severity
from whygrad.rules.numbers import say
from whygrad.rules.rule import Rule
from whygrad.rules.syntax import calls, ran


class HookReplacesGradient(Rule):
    """The gradient differs from the mathematics: a hook of a tensor changes it.

    `tensor.register_hook(f)` lets `f` replace the gradient that arrives at the tensor. What `.grad` then holds is what
    `f` returned. That is often meant (a mask, a clip, a reversed gradient), and easily forgotten when a gradient does
    not agree with a calculation by hand.

    **How to see it.** The contributions and the value that was written differ.
    """

    code = "WG906"
    slug = "hook-replaces-gradient"
    severity = Severity.NOTE
    intended = "the hook is to scale, mask or clip this gradient"
    search = ("register_hook changes gradient", "gradient not equal to expected value hook")
    wrong = (
        """
        import torch
        w = torch.tensor(1.0, requires_grad=True)
        w.register_hook(lambda grad: grad * 10)  # <- here
        (w * 2).backward()
        """,
    )
    right = (
        """
        import torch
        seen = []
        w = torch.tensor(1.0, requires_grad=True)
        w.register_hook(seen.append)
        (w * 2).backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        changed = [write for write in facts.of(GradWritten) if write.hooked and _differs(write)]
        if not changed:
            return
        write = changed[0]
        place = facts.place(write.site)
        for path in facts.ledger.sources():
            source = facts.source(path)
            made = [call for call in calls(source.tree, "register_hook") if ran(facts, source, call)]
            if made:
                place = facts.line(path, made[0].lineno)
                break
        name = facts.describe(write.tensor)
        arrived = ", ".join(say(term.value) for term in write.contributions[:3])
        yield self.finding(
            facts,
            place,
            f"a hook changes the gradient of {name}",
            [f"{arrived} arrived at {name}; after the hook {name}.grad was {say(write.after)}."],
            why="What a tensor's hook returns takes the gradient's place.",
            fix="Remove the hook if the gradient is to be the derivative.",
            evidence=[facts.evidence(write, f"{arrived} arrived, {say(write.after)} was written")],
            subjects=[name],
        )


def _differs(write: GradWritten) -> bool:
    if len(write.contributions) != 1 or (write.before is not None and write.before.magnitude):
        return False
    came, left = write.contributions[0].value.magnitude, write.after.magnitude
    return came is not None and left is not None and abs(came - left) > 1e-6 * max(came, left, 1e-30)
