"""WG305: a recomputed forward moves the running statistics a second time."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygrad.ledger.events import ModuleCalled, Site
from whygrad.rules.facts import Facts, Pass
from whygrad.rules.finding import Finding
from whygrad.rules.modulecalls import DROPPING, tracks_statistics
from whygrad.rules.rule import Rule


class StatisticsUpdatedAgain(Rule):
    """Checkpointing runs the forward twice, so BatchNorm updates its running statistics twice a step.

    `torch.utils.checkpoint` frees the activations and runs the function again during backward. The gradients are
    right, but everything else that the forward does happens twice: BatchNorm moves `running_mean` and `running_var`
    and counts `num_batches_tracked` once more. With momentum 0.1 a step moves the averages by 0.19. With
    `preserve_rng_state=False`, a Dropout also draws another mask in the second run, and the gradients are wrong.

    **How to see it.** A BatchNorm is called in training mode while a backward pass runs.

    **How to put it right.** Keep BatchNorm out of the checkpointed function, or give it the momentum
    `1 - sqrt(1 - m)`, which two updates turn into `m`. Leave `preserve_rng_state` at True.
    """

    code = "WG305"
    slug = "checkpoint-runs-forward-twice"
    search = (
        "checkpoint BatchNorm running_mean",
        "activation checkpointing changes evaluation results",
        "num_batches_tracked is 2 after one step",
        "preserve_rng_state dropout",
    )
    wrong = (
        """
        import torch
        from torch import nn
        from torch.utils.checkpoint import checkpoint
        torch.manual_seed(0)
        block = nn.Sequential(nn.Conv1d(2, 4, 3), nn.BatchNorm1d(4), nn.ReLU())
        head = nn.Linear(4, 1)
        x = torch.randn(8, 2, 6)
        hidden = checkpoint(block, x, use_reentrant=False)  # <- here
        head(hidden.mean(dim=2)).pow(2).mean().backward()
        """,
    )
    right = (
        """
        import torch
        from torch import nn
        from torch.utils.checkpoint import checkpoint
        torch.manual_seed(0)
        conv, norm = nn.Conv1d(2, 4, 3), nn.BatchNorm1d(4)
        head = nn.Linear(4, 1)
        x = torch.randn(8, 2, 6)
        hidden = norm(checkpoint(conv, x, use_reentrant=False))
        head(hidden.mean(dim=2)).pow(2).mean().backward()
        """,
        """
        import torch
        from torch import nn
        from torch.utils.checkpoint import checkpoint
        torch.manual_seed(0)
        block = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Dropout(0.2))
        x = torch.randn(8, 4)
        checkpoint(block, x, use_reentrant=False).pow(2).mean().backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        calls = facts.of(ModuleCalled)
        for one in facts.passes:
            if one.ended is None:
                continue
            for again in facts.between(ModuleCalled, one.began.seq, one.ended.seq):
                module = facts.modules.get(again.module)
                if module is None or not again.training:
                    continue
                first = next(
                    (
                        call
                        for call in reversed(calls)
                        if call.seq < one.began.seq and call.module == again.module and call.training
                    ),
                    None,
                )
                if first is None:
                    continue
                place = _checkpoint(facts, first, one)
                if tracks_statistics(module):
                    yield self._moved(facts, one, first, again, place)
                elif DROPPING.match(module.kind) and place is not None and "preserve_rng_state=False" in place.code:
                    yield self._dropped(facts, one, first, again, place)

    def _moved(self, facts: Facts, one: Pass, first: ModuleCalled, again: ModuleCalled, place: Site | None) -> Finding:
        module = facts.modules[again.module]
        name = module.path or f"the {module.kind}"
        return self.finding(
            facts,
            place.id if place is not None else facts.place(first.site),
            f"{name} updates its running statistics twice a step",
            [
                f"{name} ({module.kind}) was called in training mode on {facts.place(first.site).where}, and once more "
                f"during the backward on {facts.place(one.began.site).where}, when the checkpointed forward ran again.",
                "Both calls moved running_mean and running_var by the same batch and counted num_batches_tracked: "
                "with momentum m the averages move by 1 - (1 - m)^2 instead of m.",
            ],
            why="Checkpointing frees the activations and runs the function again in backward, side effects included.",
            fix="Keep the normalisation outside of the checkpointed function, or build it with "
            "momentum=1 - (1 - m) ** 0.5.",
            evidence=[
                facts.evidence(first, f"{name} ran in the forward"),
                facts.evidence(one.began, "the backward began"),
                facts.evidence(again, f"{name} ran again, in training mode, inside the backward"),
            ],
            subjects=[name],
        )

    def _dropped(self, facts: Facts, one: Pass, first: ModuleCalled, again: ModuleCalled, place: Site) -> Finding:
        module = facts.modules[again.module]
        name = module.path or f"the {module.kind}"
        return self.finding(
            facts,
            place.id,
            f"{name} draws another mask when the checkpointed forward runs again",
            [
                f"{name} ran on {facts.place(first.site).where} and again during the backward on "
                f"{facts.place(one.began.site).where}; preserve_rng_state=False, so the second mask is not the first: "
                "the gradient belongs to another output than the one that the loss was computed from."
            ],
            why="Only the saved state of the random generator makes the second run drop the same elements.",
            fix="Leave preserve_rng_state at True.",
            evidence=[
                facts.evidence(first, f"{name} ran in the forward"),
                facts.evidence(again, f"{name} ran again inside the backward"),
            ],
            subjects=[name],
        )


def _checkpoint(facts: Facts, first: ModuleCalled, one: Pass) -> Site | None:
    """The call of `checkpoint` that ran the module."""
    found = None
    here = facts.site(first.site)
    for site in facts.of(Site):
        if site.seq < one.began.seq and "checkpoint" in site.code and _calls_checkpoint(site.code):
            if here is not None and site.id == here.id:
                return site
            if found is None or len(site.code) <= len(found.code):
                found = site
    return found


def _calls_checkpoint(code: str) -> bool:
    try:
        tree = ast.parse(code.strip(), mode="eval")
    except (SyntaxError, ValueError):
        return "checkpoint(" in code
    call = tree.body
    if not isinstance(call, ast.Call):
        return False
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return "checkpoint" in name
