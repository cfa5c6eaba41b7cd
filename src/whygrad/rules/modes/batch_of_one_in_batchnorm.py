"""WG311: BatchNorm in training mode gets a single value per channel."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.ledger.events import ModuleCalled, Raised
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding
from whygrad.rules.modulecalls import TRACKING
from whygrad.rules.rule import Rule

TEXT = "Expected more than 1 value per channel when training"


class BatchOfOneInBatchNorm(Rule):
    """Expected more than 1 value per channel when training: BatchNorm was given a batch of one.

    In training mode BatchNorm normalises with the mean and variance of the batch; of one value the variance is 0. It
    happens with the last, incomplete batch of an epoch, with a single sample for inference while the model is still in
    training mode, and after pooling to one pixel.

    **How to put it right.** For inference, call `model.eval()` first. For training, use `drop_last=True` in the
    DataLoader, larger batches, or GroupNorm or LayerNorm.
    """

    code = "WG311"
    slug = "batch-of-one-in-batchnorm"
    search = (TEXT, "BatchNorm batch size 1", "drop_last DataLoader BatchNorm")
    wrong = (
        """
        import torch
        from torch import nn
        model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
        print(model(torch.randn(1, 4)))  # <- here
        """,
    )
    right = (
        """
        import torch
        from torch import nn
        model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)).eval()
        with torch.no_grad():
            print(model(torch.randn(1, 4)))
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        for raised in facts.of(Raised):
            if TEXT not in raised.text:
                continue
            failed = [
                call
                for call in facts.of(ModuleCalled)
                if call.error and call.seq < raised.seq and TRACKING.match(facts.modules[call.module].kind)
            ]
            call = failed[-1] if failed else None
            name = (facts.modules[call.module].path if call is not None else "") or "a BatchNorm"
            shape = f" of shape {call.inputs[0].shape}" if call is not None and call.inputs else ""
            outer = [one for one in facts.of(ModuleCalled) if one.error and TEXT in one.error and one.depth == 0]
            at = outer[-1].site if outer else raised.site
            yield self.finding(
                facts,
                at if at is not None else facts.place(None),
                f"{name} is in training mode and gets one value per channel",
                [f"Its input{shape} holds a single value for each channel: {raised.text}."],
                why="The variance of one value is zero; BatchNorm refuses to divide by it.",
                fix="Call eval() before inference; in training use drop_last=True or a larger batch.",
                evidence=[facts.evidence(raised, raised.text)],
                subjects=[name],
            )
