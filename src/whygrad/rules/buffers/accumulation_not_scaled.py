"""WG109: the losses of an accumulation window are summed, each of them a mean."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.ledger.events import GradChanged, GradWritten, ModuleCalled, Operation, TensorId
from whygrad.rules.accumulation import Guarded, guarded_steps
from whygrad.rules.facts import Facts, Pass, inputs_of
from whygrad.rules.finding import Edit, Finding, Severity
from whygrad.rules.numbers import say
from whygrad.rules.rule import Rule
from whygrad.rules.syntax import replace

MEANS = frozenset(
    {"mean", "mse_loss", "cross_entropy", "nll_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
     "binary_cross_entropy_with_logits", "kl_div"}
)  # fmt: skip
SCALE_FREE = ("Adam", "RMSprop", "Adagrad", "Lion", "Adadelta", "Rprop", "Adafactor", "NAdam", "RAdam")


class AccumulationNotScaled(Rule):
    """With gradient accumulation the gradient is k times too large.

    Each of the k micro-batches has a *mean* loss, and `backward()` adds their gradients. The sum of k means is k
    times the mean over the large batch: the step is k times as long as with a batch of that size, and a clipping
    threshold meets a norm k times as large. (Adam hides most of it, since it divides by the gradient's size.)

    **How to put it right.** Divide the loss by the number of micro-batches before `backward()`.
    """

    code = "WG109"
    slug = "accumulation-not-scaled"
    severity = Severity.WARNING
    intended = "the learning rate was chosen for the sum"
    search = (
        "gradient accumulation divide loss",
        "accumulation steps loss too large",
        "effective batch size learning rate",
    )
    wrong = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        x, y = torch.randn(8, 2, 4), torch.randn(8, 2, 1)
        for i in range(8):
            loss = torch.nn.functional.mse_loss(model(x[i]), y[i])
            loss.backward()  # <- here
            if (i + 1) % 4 == 0:
                optimizer.step()
                optimizer.zero_grad()
        """,
    )
    right = (
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        x, y = torch.randn(8, 2, 4), torch.randn(8, 2, 1)
        for i in range(8):
            loss = torch.nn.functional.mse_loss(model(x[i]), y[i]) / 4
            loss.backward()
            if (i + 1) % 4 == 0:
                optimizer.step()
                optimizer.zero_grad()
        """,
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        x, y = torch.randn(8, 2, 4), torch.randn(8, 2, 1)
        for i in range(8):
            loss = (model(x[i]) - y[i]).square().sum()
            loss.backward()
            if (i + 1) % 4 == 0:
                optimizer.step()
                optimizer.zero_grad()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        for guarded in guarded_steps(facts):
            count = guarded.per_step
            if count is None or not guarded.windows:
                continue
            window = guarded.windows[0]
            sites = {each.began.site for each in window}
            if len(sites) != 1 or _scaled_later(facts, guarded) or not all(_is_mean(facts, each) for each in window):
                continue
            if any(write.before is not None and write.before.magnitude for write in window[0].written):
                continue
            yield self._finding(facts, guarded, window, count)

    def _finding(self, facts: Facts, guarded: Guarded, window: tuple[Pass, ...], count: int) -> Finding:
        kind = facts.optimizers[guarded.optimizer][0].kind
        first, last = window[0].written[0], window[-1]
        name = facts.describe(first.tensor)
        total = next((write for write in last.written if write.tensor == first.tensor), first)
        return self.finding(
            facts,
            window[0].began.site if window[0].began.site is not None else facts.place(None),
            f"{count} mean losses are added, and the loss is not divided by {count}",
            [
                f"Each step used {count} backward passes; {name}.grad grew from {say(first.after)} to "
                f"{say(total.after)} over them.",
                f"Every one of those losses is a mean over its micro-batch, so their sum is {count} "
                "times the mean over "
                "the whole window.",
            ],
            why="backward() adds gradients; it does not average them.",
            fix=f"Divide the loss by {count} before backward().",
            evidence=[
                facts.evidence(each.began, f"a mean loss of {say(each.began.root_value)}") for each in window[:4]
            ],
            subjects=[name],
            severity=Severity.NOTE if kind.startswith(SCALE_FREE) else Severity.WARNING,
            edits=_edits(facts, window[0], count),
        )


def _is_mean(facts: Facts, each: Pass) -> bool:
    """Whether the root is a mean that nothing divides."""
    tensor: TensorId = each.began.roots[0]
    for _ in range(6):
        maker = facts.makers.get(tensor)
        if isinstance(maker, ModuleCalled):
            known = facts.modules.get(maker.module)
            return known is not None and known.kind.endswith("Loss") and len(maker.inputs) >= 2
        if not isinstance(maker, Operation):
            return False
        name = maker.function.rpartition(".")[2]
        if name in MEANS:
            reduction = next((one.constant for one in maker.inputs if one.keyword == "reduction"), "mean")
            return reduction == "mean" and bool(each.began.root_value is None or each.began.root_value.count == 1)
        if name not in ("add", "call", "float", "squeeze"):
            return False
        inner = [one for one in inputs_of(maker) if facts.tensors[one].requires_grad]
        if not inner:
            return False
        tensor = inner[0]
    return False


def _scaled_later(facts: Facts, guarded: Guarded) -> bool:
    """Whether something divides the gradients before the step, or a pass was given a gradient of its own."""
    by_hand = ("div_", "mul_", "assignment", "unseen", "hook")
    divided = any(change.by.rpartition(".")[2] in by_hand for change in facts.of(GradChanged))
    hooked = any(write.hooked for write in facts.of(GradWritten))
    return divided or hooked or any(each.began.gradient is not None for each in guarded.windows[0])


def _edits(facts: Facts, first: Pass, count: int) -> list[Edit]:
    site = facts.site(first.began.site)
    if site is None:
        return []
    source = facts.source(site.path)
    node = source.expression(site)
    owner = getattr(getattr(node, "func", None), "value", None)
    if owner is None or getattr(getattr(node, "func", None), "attr", "") != "backward":
        return []
    return [replace(source, owner, f"({source.segment(owner)} / {count})")]
