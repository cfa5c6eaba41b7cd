"""WG509: class weights cancel, since each call of the loss sees one class only."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.ledger.events import SiteId
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding, Severity
from whygrad.rules.numbers import say
from whygrad.rules.rule import Rule
from whygrad.rules.targets import LossCall, loss_calls


class ClassWeightsCancel(Rule):
    """Class weights in the loss have no effect.

    With `reduction="mean"`, `cross_entropy` and `nll_loss` divide by the sum of the weights *of the targets in this
    call*. If all targets of a call are of one class (a batch of one, or batches sorted by class), that class's weight
    stands above and below the fraction and cancels: the result is the unweighted loss.

    **How to put it right.** Use `reduction="sum"` and divide by the total weight of all samples of the step, or
    process samples of several classes in one call.
    """

    code = "WG509"
    slug = "class-weights-cancel"
    search = ("class weights no effect", "cross_entropy weight batch size 1", "CrossEntropyLoss weight ignored")
    wrong = (
        """
        import torch
        import torch.nn.functional as F
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 2)
        weight = torch.tensor([0.1, 0.9])
        for x, y in zip(torch.randn(4, 1, 3), torch.tensor([[0], [0], [1], [0]])):
            loss = F.cross_entropy(model(x), y, weight=weight)  # <- here
            (loss / 4).backward()
        """,
    )
    right = (
        """
        import torch
        import torch.nn.functional as F
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 2)
        weight = torch.tensor([0.1, 0.9])
        targets = torch.tensor([[0], [0], [1], [0]])
        for x, y in zip(torch.randn(4, 1, 3), targets):
            loss = F.cross_entropy(model(x), y, weight=weight, reduction="sum")
            (loss / weight[targets].sum()).backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        by_site: dict[SiteId | None, list[LossCall]] = {}
        for call in loss_calls(facts):
            if call.weight_value is not None and call.reduction == "mean" and call.differentiable:
                by_site.setdefault(call.event.site, []).append(call)
        for site, made in by_site.items():
            classes = [call.classes for call in made]
            if site is None or len(made) < 2 or any(len(each) != 1 for each in classes):
                continue
            weights = made[0].weight_value
            used = {min(each) for each in classes}
            if weights is None or len(set(weights)) < 2 or len(used) < 2:
                continue
            first = made[0]
            yield self.finding(
                facts,
                site,
                "the class weights cancel: each call of the loss sees a single class",
                [
                    f"In all {len(made)} recorded calls every target was of one class "
                    f"(classes {', '.join(str(one) for one in sorted(used))} in turn).",
                    f"The mean divides by the weights of those targets: w * loss / w is the loss without weights, "
                    f"here {say(first.value)}.",
                ],
                why='reduction="mean" divides by the sum of the weights of the targets in the call.',
                fix='Use reduction="sum" and divide by the total weight of all samples of the step.',
                evidence=[
                    facts.evidence(call.event, f"targets of class {min(call.classes)} only") for call in made[:3]
                ],
                subjects=[facts.describe(first.logits)],
                severity=Severity.ERROR,
            )
