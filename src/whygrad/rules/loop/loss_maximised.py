"""WG516: the optimizer climbs a loss that is to be small."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.ledger.events import ModuleCalled, Named, Operation, OptimizerStepped, SiteId, TensorId
from whygrad.rules.facts import Facts, Maker, Pass, inputs_of
from whygrad.rules.finding import Finding, Severity
from whygrad.rules.numbers import say
from whygrad.rules.rule import Rule

LOSSES = frozenset(
    {"mse_loss", "cross_entropy", "nll_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
     "binary_cross_entropy_with_logits", "ctc_loss", "gaussian_nll_loss", "poisson_nll_loss"}
)  # fmt: skip
MODULES = frozenset(
    {"MSELoss", "CrossEntropyLoss", "NLLLoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "BCELoss", "BCEWithLogitsLoss"}
)
PASSES = 3


class LossMaximised(Rule):
    """The loss grows with every step: its sign is turned, and the optimizer climbs it.

    An optimizer goes down. If what `backward()` starts from is *minus* a loss (`(-loss).backward()`), or the optimizer
    was made with `maximize=True`, it goes up: the error grows, slowly at first, then without limit.

    **How to put it right.** Minimise the loss itself, or `-reward`, but not `-loss`.
    """

    code = "WG516"
    slug = "loss-maximised"
    severity = Severity.WARNING
    intended = "the loss is to grow, as in an attack or for an adversary"
    search = ("loss increases every step", "negative loss", "wrong sign of the loss", "maximize=True")
    wrong = (
        """
        import torch
        import torch.nn.functional as F
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for _ in range(5):
            optimizer.zero_grad()
            loss = -F.mse_loss(model(x), y)  # <- here
            loss.backward()
            optimizer.step()
        """,
        """
        import torch
        import torch.nn.functional as F
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, maximize=True)  # <- here
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for _ in range(5):
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
        """,
    )
    right = (
        """
        import torch
        import torch.nn.functional as F
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))
        for _ in range(5):
            optimizer.zero_grad()
            loss = -F.log_softmax(model(x), 1)[torch.arange(8), y].mean()
            loss.backward()
            optimizer.step()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        stepping = {step.optimizer for step in facts.of(OptimizerStepped)}
        if len(stepping) != 1 or len(facts.passes) < PASSES:
            return
        optimizer = facts.optimizers[next(iter(stepping))][-1]
        held = {tensor for group in optimizer.groups for tensor in group.parameters}
        climbs = all(group.options.get("maximize") is True for group in optimizer.groups)
        own = [each for each in facts.passes if any(write.tensor in held for write in each.written)]
        signs = [_sign(facts, each) for each in own[:20]]
        if len(own) < PASSES or None in signs:
            return
        turned = [found for found in signs if found is not None]
        negative = {sign for sign, _ in turned}
        if len(negative) != 1 or (negative == {-1}) == climbs:
            return
        likelihood = _is_likelihood(facts, turned[0][1])
        if not likelihood and not held & set(facts.owners):
            return  # an attack on an input
        values = [
            value * (1 if climbs else -1)
            for each in own[: len(turned)]
            if each.began.root_value is not None and isinstance(value := each.began.root_value.scalar, (int, float))
        ]
        if len(values) < PASSES or not values[-1] > values[0]:
            return
        first, last = own[0], own[len(turned) - 1]
        what = "Minus the log-likelihood" if likelihood else "The loss"
        yield self.finding(
            facts,
            facts.place(optimizer.site if climbs else _named_at(facts, first.began.roots[0])),
            "the optimizer lowers the likelihood" if likelihood else "the optimizer climbs the loss",
            [
                f"{what} on {facts.place(turned[0][1].site).where} went up from {values[0]:.4g} to "
                f"{values[-1]:.4g} in the first {len(values)} recorded passes.",
                "The optimizer was built with maximize=True."
                if climbs
                else f"backward() started from {say(first.began.root_value)}: "
                + ("a log-likelihood, which is to be large." if likelihood else "the loss with its sign turned."),
            ],
            why="An optimizer goes down on what backward() starts from (up, with maximize=True).",
            fix="Leave out maximize=True."
            if climbs
            else "Call backward() on minus the log-likelihood."
            if likelihood
            else "Call backward() on the loss itself, without the minus.",
            evidence=[
                facts.evidence(first.began, f"a pass from {say(first.began.root_value)}"),
                facts.evidence(last.began, f"a later pass from {say(last.began.root_value)}"),
            ],
            subjects=[facts.describe(tensor) for tensor in held],
        )


def _named_at(facts: Facts, root: TensorId) -> SiteId | None:
    """Where the root got the name by which backward() was called on it; else where it was made."""
    named = [one for one in facts.of(Named) if one.tensor == root and one.site is not None]
    return named[-1].site if named else facts.makers[root].site


def _is_likelihood(facts: Facts, maker: Maker) -> bool:
    if not isinstance(maker, Operation):
        return False
    code = facts.place(maker.site).code
    return maker.function.endswith("log_prob") or (maker.function == "call" and ".log_prob(" in code)


def _sign(facts: Facts, each: Pass) -> tuple[int, Maker] | None:
    """With which sign a pass's root holds what is to be small, a loss or minus a log-likelihood, and what made that."""
    sign, tensor = 1, each.began.roots[0]
    for _ in range(5):
        maker = facts.makers.get(tensor)
        if maker is None or _is_loss(facts, maker):
            return (sign, maker) if maker is not None else None
        if _is_likelihood(facts, maker):
            return -sign, maker
        if not isinstance(maker, Operation):
            return None
        inner: list[TensorId] = [one for one in inputs_of(maker) if facts.tensors[one].requires_grad]
        factor = next((one.constant for one in maker.inputs if isinstance(one.constant, (int, float))), None)
        if len(inner) != 1:
            return None
        if maker.function == "neg" or (maker.function in ("mul", "rmul", "div") and factor is not None and factor < 0):
            sign = -sign
        elif maker.function not in ("mean", "sum") and not (
            maker.function in ("mul", "rmul", "div") and factor is not None
        ):
            return None
        tensor = inner[0]
    return None


def _is_loss(facts: Facts, maker: Maker) -> bool:
    if isinstance(maker, ModuleCalled):
        known = facts.modules.get(maker.module)
        return known is not None and known.kind in MODULES
    return maker.function.rpartition(".")[2] in LOSSES
