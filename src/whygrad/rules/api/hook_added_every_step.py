"""WG905: a gradient hook is registered again in every round."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygrad.ledger.events import GradWritten
from whygrad.ledger.values import Value
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding, Severity
from whygrad.rules.numbers import say, say_number
from whygrad.rules.rule import Rule
from whygrad.rules.source import Source
from whygrad.rules.syntax import calls, dotted, ran

REGISTERS = (
    "register_hook",
    "register_post_accumulate_grad_hook",
    "register_full_backward_hook",
    "register_forward_hook",
)


class HookAddedEveryStep(Rule):
    """A gradient hook changes the gradient more with every step: it is registered again and again.

    Hooks of a parameter or module stay until they are removed. Registered inside the training loop, one more joins in
    each round: a hook that halves the gradient halves it once, then quarters it, then divides it by eight.

    **How to put it right.** Register the hook once, before the loop; or keep the handle and call `handle.remove()`.
    """

    code = "WG905"
    slug = "hook-added-every-step"
    explains = ("WG906",)
    search = ("register_hook in training loop", "hook called multiple times", "gradient scaled more every iteration")
    wrong = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for _ in range(4):
            model.weight.register_hook(lambda grad: grad * 0.5)  # <- here
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            optimizer.step()
        """,
    )
    right = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for parameter in model.parameters():
            parameter.register_hook(lambda grad: grad.clamp(-100, 100))
        for _ in range(4):
            optimizer.zero_grad()
            hidden = model(x)
            hidden.register_hook(lambda grad: grad * 0.5)
            (hidden - y).square().mean().backward()
            optimizer.step()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        for path in facts.ledger.sources():
            source = facts.source(path)
            for call in calls(source.tree, *REGISTERS):
                loop = source.loop_at(call.lineno)
                owner = dotted(call.func).rpartition(".")[0]
                if loop is None or not owner or not _trains(loop) or not ran(facts, source, call):
                    continue
                grown = _grown(facts, owner)
                if grown is not None:
                    yield self._finding(facts, source, call, *grown)

    def _finding(self, facts: Facts, source: Source, call: ast.Call, first: GradWritten, last: GradWritten) -> Finding:
        name = facts.describe(first.tensor)
        ratios = [_ratio(write) for write in (first, last)]
        return self.finding(
            facts,
            facts.line(source.path, call.lineno),
            "one more hook is registered in every round, and all of them run",
            [
                f"The hooks made {say_number(ratios[0])} of {name}'s gradient at first, and "
                f"{say_number(ratios[1])} of it in "
                f"the last recorded round ({say(last.after)}).",
            ],
            why="A hook stays registered until its handle's remove() is called.",
            fix="Register the hook once, before the loop.",
            evidence=[
                facts.evidence(first, f"hooks changed {name}'s gradient by a factor of {say_number(ratios[0])}"),
                facts.evidence(last, f"by a factor of {say_number(ratios[1])}"),
            ],
            subjects=[name],
            severity=Severity.ERROR,
        )


def _trains(loop: ast.AST) -> bool:
    """Whether the loop is one of training rounds: a backward runs in it, and the hook is not removed there."""
    return any(True for _ in calls(loop, "backward")) and not any(True for _ in calls(loop, "remove"))


def _grown(facts: Facts, owner: str) -> tuple[GradWritten, GradWritten] | None:
    """The first and the last write of a leaf whose hooks change its gradient more and more."""
    by_tensor: dict[int, list[GradWritten]] = {}
    for write in facts.of(GradWritten):
        if write.hooked and owner in facts.ledger.names(write.tensor):
            by_tensor.setdefault(write.tensor, []).append(write)
    for writes in by_tensor.values():
        first, last = _ratio(writes[0]), _ratio(writes[-1])
        if len(writes) > 1 and first and last and abs(first - last) > 0.01 * abs(first):
            return writes[0], writes[-1]
    return None


def _ratio(write: GradWritten) -> float | None:
    """What the hooks made of the gradient that arrived, as a ratio of norms."""
    before: Value | None = write.contributions[0].value if len(write.contributions) == 1 else None
    if before is None or (write.before is not None and write.before.magnitude):
        return None
    came, left = before.magnitude, write.after.magnitude
    return left / came if came and left is not None else None
