"""WG601: NaN comes back from a branch that was masked out."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding
from whygrad.rules.nonfinite import DECOMPOSITIONS, Culprit, Symptom, culprit, symptom
from whygrad.rules.rule import Rule
from whygrad.rules.slopes import told


class UnselectedBranch(Rule):
    """The output is finite and the gradient is NaN: the branch of torch.where that was not selected.

    `torch.where(mask, a, b)` computes both branches. Where `b` overflows, divides by 0 or takes the square root of 0,
    its slope is infinite. Backward sends it a gradient of 0 for the entries that were not selected, and 0 times
    infinity is NaN. A mask that multiplies (`mask * f(x)`) or `masked_fill` afterwards does the same.

    **How to see it.** The forward is right everywhere; the NaN sits exactly in the masked entries of the gradient.

    **How to put it right.** Make the *argument* of the dangerous function safe, not only its result:
    `torch.where(x > 0, torch.sqrt(torch.where(x > 0, x, 1)), 0)`, or clamp before (`torch.exp(x.clamp(max=0))`).
    """

    code = "WG601"
    slug = "unselected-branch"
    search = (
        "torch.where NaN gradient", "NaN gradient but output finite", "masked NaN backward", "0 * inf gradient",
        "where other branch overflow", "double where trick",
    )  # fmt: skip
    wrong = (
        """
        import torch
        x = torch.tensor([0.0, 4.0], requires_grad=True)
        root = torch.sqrt(x)  # <- here
        y = torch.where(x > 0, root, torch.zeros(2))
        y.sum().backward()
        """,
        """
        import torch
        x = torch.tensor([-1.0, 200.0], requires_grad=True)
        y = torch.where(x > 0, x + 1, torch.exp(x))  # <- here
        y.sum().backward()
        """,
    )
    right = (
        """
        import torch
        x = torch.tensor([0.0, 4.0], requires_grad=True)
        safe = torch.where(x > 0, x, torch.ones(2))
        y = torch.where(x > 0, torch.sqrt(safe), torch.zeros(2))
        y.sum().backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        found = symptom(facts)
        guilty = culprit(facts, found) if found is not None else None
        if found is not None and guilty is not None and is_masked(guilty):
            yield self._found(facts, found, guilty)

    def _found(self, facts: Facts, found: Symptom, guilty: Culprit) -> Finding:
        assert guilty.selected_by is not None
        chooser = facts.place(guilty.selected_by.site)
        return self.finding(
            facts,
            facts.place(guilty.node.site),
            "NaN comes back from a branch that was masked out",
            [
                *told(facts, found, guilty),
                f"`{chooser.code}` ({chooser.where}) keeps that element out of the result and sends it a "
                "gradient of 0; 0 times infinity is NaN.",
            ],
            why="A mask after the dangerous function hides its value, not its slope.",
            fix="Make the argument safe before the function (clamp it, or a second torch.where inside).",
            evidence=[
                facts.evidence(guilty.node, f"{guilty.node.name}: {guilty.reason}"),
                facts.evidence(guilty.selected_by, f"{guilty.selected_by.name} sends 0 to what was not selected"),
                facts.evidence(found.write or found.entry.began, "the gradient is not finite"),
            ],
            subjects=[facts.describe(found.write.tensor)] if found.write is not None else [],
        )


def is_masked(guilty: Culprit) -> bool:
    """Whether a choice between the root and the culprit kept its element out of the result."""
    return guilty.selected_by is not None and not guilty.node.name.startswith(DECOMPOSITIONS)
