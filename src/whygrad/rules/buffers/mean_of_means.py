"""WG110: gradients of means over different counts are averaged."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.ledger.events import BackwardId, GradReset, GradWritten, Operation, OptimizerStepped, SiteId, TensorId
from whygrad.rules.facts import Facts, Pass, inputs_of
from whygrad.rules.finding import Finding, Severity
from whygrad.rules.numbers import say_number
from whygrad.rules.rule import Rule
from whygrad.rules.targets import LossCall, loss_calls

UNEQUAL = 1.2
"""Counts that differ by less than this factor are left alone."""


class MeanOfMeans(Rule):
    """Gradient accumulation over padded batches does not give the large-batch gradient.

    Each micro-batch's loss is a mean over *its own* valid targets. Adding those means and dividing by the number of
    micro-batches gives a token of a short batch more weight than a token of a long one; the gradient of the large
    batch is one mean over all tokens.

    **How to put it right.** Use `reduction="sum"` and divide by the number of valid targets of the whole window.
    """

    code = "WG110"
    slug = "mean-of-means"
    severity = Severity.WARNING
    intended = "every micro-batch is to count the same, however many targets it has"
    search = (
        "gradient accumulation different from large batch",
        "cross_entropy ignore_index accumulation",
        "token mean padding accumulation loss too high",
    )
    wrong = (
        """
        import torch
        import torch.nn.functional as F
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 5)
        x = torch.randn(2, 6, 4)
        labels = torch.randint(0, 5, (2, 6))
        labels[0, 2:] = -100
        for micro in range(2):
            loss = F.cross_entropy(model(x[micro]), labels[micro]) / 2  # <- here
            loss.backward()
        """,
    )
    right = (
        """
        import torch
        import torch.nn.functional as F
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 5)
        x = torch.randn(2, 6, 4)
        labels = torch.randint(0, 5, (2, 6))
        labels[0, 2:] = -100
        count = (labels != -100).sum()
        for micro in range(2):
            loss = F.cross_entropy(model(x[micro]), labels[micro], reduction="sum") / count
            loss.backward()
        """,
        """
        import torch
        import torch.nn.functional as F
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 5)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x = torch.randn(4, 6, 4)
        labels = torch.randint(0, 5, (4, 6))
        labels[0, 2:] = -100
        for batch in range(4):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x[batch]), labels[batch])
            loss.backward()
            optimizer.step()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        means = {
            call.output: call for call in loss_calls(facts) if call.reduction == "mean" and call.output is not None
        }
        told: set[SiteId | None] = set()
        for window in windows(facts):
            yield from self._masked(facts, window, told)
            members = [(each, call) for each in window if (call := _mean_in(facts, each, means)) is not None]
            by_site: dict[SiteId | None, list[tuple[Pass, LossCall]]] = {}
            for each, call in members:
                by_site.setdefault(call.event.site, []).append((each, call))
            for site, same in by_site.items():
                counts = [call.valid for _, call in same]
                known = [count for count in counts if count]
                skips = any(call.targets is not None and call.ignored in call.targets for _, call in same)
                if site in told or len(known) < 2 or len(known) != len(counts) or not skips:
                    continue
                if max(known) < UNEQUAL * min(known):
                    continue
                told.add(site)
                yield self._finding(facts, site, same, known)

    def _masked(self, facts: Facts, window: list[Pass], told: set[SiteId | None]) -> Iterator[Finding]:
        """Means by hand: a sum that is divided by a count that differs from pass to pass (of a mask)."""
        divided = [found for each in window if (found := _divided_by_count(facts, each)) is not None]
        sites = {operation.site for operation, _ in divided}
        counts = [count for _, count in divided]
        if len(divided) != len(window) or len(sites) != 1 or sites <= told or max(counts) < UNEQUAL * min(counts):
            return
        told |= sites
        first = divided[0][0]
        yield self.finding(
            facts,
            facts.place(first.site),
            "means over different counts are added with equal weight",
            [
                f"One accumulated gradient is made of {len(counts)} losses, each a sum over its own count: "
                f"{', '.join(say_number(count) for count in counts[:6])}.",
                f"An element of the smallest counts {max(counts) / min(counts):.3g} times as much as "
                "one of the largest.",
            ],
            why="A mean of means is the mean over all only where every part has the same count.",
            fix="Divide each sum by the count of the whole accumulation window.",
            evidence=[
                facts.evidence(operation, f"a sum was divided by {say_number(count)}")
                for operation, count in divided[:4]
            ],
            subjects=[facts.describe(first.outputs[0])],
        )

    def _finding(
        self, facts: Facts, site: SiteId | None, same: list[tuple[Pass, LossCall]], counts: list[int]
    ) -> Finding:
        least, most = min(counts), max(counts)
        listed = ", ".join(str(count) for count in counts[:6])
        return self.finding(
            facts,
            site if site is not None else facts.place(None),
            "means over different numbers of targets are added with equal weight",
            [
                f"One accumulated gradient is made of {len(counts)} losses, each a mean over its own valid targets: "
                f"{listed} of them.",
                f"A target in the smallest micro-batch counts {most / least:.3g} times as much as one in the largest.",
            ],
            why="A mean of means is the mean over all only where every part has the same count.",
            fix='Use reduction="sum" and divide by the number of valid targets of the whole accumulation window.',
            evidence=[facts.evidence(call.event, f"a mean over {call.valid} valid targets") for _, call in same[:4]],
            subjects=[facts.describe(same[0][1].output)],
        )


def windows(facts: Facts) -> Iterator[list[Pass]]:
    """Passes whose gradients were added in one buffer, with no reset and no step between: two or more each."""
    passes = {each.id: each for each in facts.passes}
    tensor = _most_written(facts)
    current: list[BackwardId] = []
    if tensor is None:
        return
    steps = [step.seq for step in facts.of(OptimizerStepped)]
    stepped = 0
    for event in facts.history(tensor):
        passed = next((seq for seq in steps if stepped < seq < event.seq), None)
        if passed is not None or (isinstance(event, GradReset)):
            if len(current) > 1:
                yield [passes[one] for one in current]
            current = []
            stepped = max((seq for seq in steps if seq < event.seq), default=stepped)
        if isinstance(event, GradWritten):
            current.append(event.backward)
    if len(current) > 1:
        yield [passes[one] for one in current]


def _most_written(facts: Facts) -> TensorId | None:
    counts: dict[TensorId, int] = {}
    for write in facts.of(GradWritten):
        counts[write.tensor] = counts.get(write.tensor, 0) + 1
    return max(counts, key=lambda tensor: counts[tensor], default=None)


def _mean_in(facts: Facts, each: Pass, means: dict[TensorId, LossCall]) -> LossCall | None:
    """The loss call that a pass's root comes from by numbers alone (divisions, sums)."""
    for root in each.began.roots:
        if root in means:
            return means[root]
        for tensor, maker in facts.upstream(root, limit=12):
            if tensor in means:
                return means[tensor]
            if getattr(maker, "function", "") not in ("div", "mul", "add", "call", "to", "float", "squeeze"):
                break
    return None


def _divided_by_count(facts: Facts, each: Pass) -> tuple[Operation, float] | None:
    """The division `sum / count` that a pass's root is, scaled by constants at most; the count is a tensor."""
    tensor = each.began.roots[0]
    for _ in range(5):
        maker = facts.makers.get(tensor)
        if not isinstance(maker, Operation):
            return None
        inner = [one for one in inputs_of(maker) if facts.tensors[one].requires_grad]
        fixed = [one for one in inputs_of(maker) if not facts.tensors[one].requires_grad]
        if len(inner) != 1:
            return None
        if maker.function == "div" and len(fixed) == 1 and maker.inputs[0].tensor == inner[0]:
            count, above = _scalar(facts, fixed[0]), facts.makers.get(inner[0])
            summed = isinstance(above, Operation) and above.function.rpartition(".")[2] == "sum"
            return (maker, count) if count is not None and count >= 1 and summed else None
        if maker.function not in ("div", "mul", "call") or fixed:
            return None
        tensor = inner[0]
    return None


def _scalar(facts: Facts, tensor: TensorId) -> float | None:
    maker, known = facts.makers.get(tensor), facts.tensors.get(tensor)
    value = maker.value if maker is not None and maker.value is not None else known.value if known is not None else None
    number = value.scalar if value is not None else None
    return float(number) if isinstance(number, (int, float)) else None
