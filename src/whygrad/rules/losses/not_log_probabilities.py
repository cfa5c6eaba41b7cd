"""WG402: a loss is given something else than the (log-)probabilities that it expects."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.ledger.events import ModuleCalled, Operation, Raised, TensorId
from whygrad.rules.facts import Facts, Maker
from whygrad.rules.finding import Edit, Finding, Severity
from whygrad.rules.flow import computed_by
from whygrad.rules.losscalls import LossCall, loss_calls, numbers_of, plain
from whygrad.rules.numbers import say_number
from whygrad.rules.rule import Rule

LAYERS = frozenset({"Linear", "Bilinear", "Conv1d", "Conv2d", "Conv3d", "LSTM", "GRU"})


class NotLogProbabilities(Rule):
    """NLLLoss (or KLDivLoss, BCELoss) is given something else than it expects: the loss is negative or meaningless.

    `NLLLoss` and `KLDivLoss` take *log*-probabilities as input, `BCELoss` takes probabilities. With probabilities,
    `NLLLoss` gives minus the mean probability, between -1 and 0; with logits it gives minus a logit, which has no lower
    bound. `KLDivLoss` takes its target as probabilities, unless `log_target=True`; with `reduction="mean"` it divides
    by the number of elements, not by the batch; exchanging input and target gives another divergence (and no gradient
    where it is due). `BCELoss` of logits raises "all elements of input should be between 0 and 1".

    **How to see it.** Nothing takes the logarithm of a normalised output between the model and the loss.

    **How to put it right.** `F.log_softmax(logits, dim=1)` before `NLLLoss`, or logits and `CrossEntropyLoss`;
    `BCEWithLogitsLoss` for logits; `reduction="batchmean"` for `KLDivLoss`.
    """

    code = "WG402"
    slug = "not-log-probabilities"
    search = (
        "NLLLoss negative loss",
        "nll_loss expects log_softmax",
        "KLDivLoss negative",
        "all elements of input should be between 0 and 1",
        "kl_div reduction batchmean",
        "loss is negative",
    )
    wrong = (
        """
        import torch
        import torch.nn.functional as F
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 3)
        probabilities = F.softmax(model(torch.randn(8, 4)), dim=1)
        loss = F.nll_loss(probabilities, torch.arange(8) % 3)  # <- here
        loss.backward()
        """,
        """
        import torch
        import torch.nn.functional as F
        torch.manual_seed(0)
        student, teacher = torch.nn.Linear(4, 3), torch.nn.Linear(4, 3).requires_grad_(False)
        x = torch.randn(8, 4)
        loss = F.kl_div(F.softmax(student(x), dim=1), F.softmax(teacher(x), dim=1), reduction="batchmean")  # <- here
        loss.backward()
        """,
    )
    right = (
        """
        import torch
        import torch.nn.functional as F
        torch.manual_seed(0)
        student, teacher = torch.nn.Linear(4, 3), torch.nn.Linear(4, 3).requires_grad_(False)
        x, y = torch.randn(8, 4), torch.arange(8) % 3
        loss = F.kl_div(F.log_softmax(student(x), dim=1), F.softmax(teacher(x), dim=1), reduction="batchmean")
        loss = loss + F.nll_loss(torch.log(F.softmax(student(x), dim=1)), y)
        loss = loss + F.binary_cross_entropy(torch.sigmoid(student(x)), torch.ones(8, 3))
        loss.backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        for call in loss_calls(facts):
            if call.kind == "nll_loss":
                yield from self._nll(facts, call)
            elif call.kind == "kl_div":
                yield from self._divergence(facts, call)
        for raised in facts.of(Raised):
            if "all elements of input should be between 0 and 1" in raised.text:
                yield self._out_of_range(facts, raised)

    def _nll(self, facts: Facts, call: LossCall) -> Iterator[Finding]:
        given = _what(facts, call.prediction)
        if given not in ("softmax", "sigmoid", "logits"):
            return
        values = numbers_of(facts, call.prediction)
        sentences = [f"The input of {call.kind} is the result of {_words(given)}, not log-probabilities."]
        if call.value is not None and call.value < 0:
            sentences.append(f"The loss is {say_number(call.value)}: a negative log-likelihood of classes is never so.")
        elif values and max(values) > 0:
            sentences.append(f"Its largest element is {say_number(max(values))}; a log-probability is at most 0.")
        if given == "logits" and len(sentences) == 1:
            return
        yield self._found(
            facts,
            call,
            f"nll_loss is given {_words(given)} instead of log-probabilities",
            sentences,
            "Apply F.log_softmax(..., dim=1) to the logits, or give the logits to cross_entropy.",
        )

    def _divergence(self, facts: Facts, call: LossCall) -> Iterator[Finding]:
        given, target = _what(facts, call.prediction), _what(facts, call.target)
        if given in ("softmax", "sigmoid", "logits"):
            yield self._found(
                facts,
                call,
                f"kl_div is given {_words(given)} as input instead of log-probabilities",
                [f"The input of kl_div is the result of {_words(given)}; it computes target * (log(target) - input)."],
                "Take the logarithm of the input: F.log_softmax(..., dim=-1).",
            )
        elif target == "log_softmax" and call.option("log_target") is False:
            yield self._found(
                facts,
                call,
                "kl_div is given log-probabilities as target",
                ["The target is the result of log_softmax, and log_target is False: it is read as probabilities."],
                "Pass log_target=True, or give the probabilities.",
            )
        elif given == "log_softmax" and _exchanged(facts, call):
            yield self._found(
                facts,
                call,
                "input and target of kl_div are exchanged",
                [
                    "The input needs no gradient and the target does: the trained distribution stands in the place of "
                    "the target. kl_div(input, target) is KL(target || input)."
                ],
                "Give the trained model's log-probabilities as input and the fixed distribution as target.",
                Severity.WARNING,
            )
        elif call.option("reduction") == "mean" and given == "log_softmax":
            yield self._found(
                facts,
                call,
                'kl_div with reduction="mean" divides by all elements, not by the batch',
                [
                    "The default averages over samples and classes: the result is the divergence divided by the "
                    "number of classes (PyTorch warns of it)."
                ],
                'Pass reduction="batchmean".',
                Severity.WARNING,
            )

    def _found(
        self,
        facts: Facts,
        call: LossCall,
        title: str,
        happened: list[str],
        fix: str,
        severity: Severity | None = None,
        edits: tuple[Edit, ...] = (),
    ) -> Finding:
        return self.finding(
            facts,
            call.call.site if call.call.site is not None else facts.place(None),
            title,
            happened,
            why="The name of the loss says what it does not do: nll_loss and kl_div take no logarithm of their input.",
            fix=fix,
            evidence=[facts.evidence(call.call, f"{call.kind} was given this")],
            subjects=[facts.describe(call.output)] if call.output is not None else [],
            severity=severity,
            edits=edits,
        )

    def _out_of_range(self, facts: Facts, raised: Raised) -> Finding:
        return self.finding(
            facts,
            raised.site if raised.site is not None else facts.place(None),
            "binary_cross_entropy is given logits instead of probabilities",
            [f"It raised: {raised.text}."],
            why="binary_cross_entropy takes probabilities; a model's raw output can be any number.",
            fix="Use binary_cross_entropy_with_logits (BCEWithLogitsLoss), or apply torch.sigmoid.",
            evidence=[facts.evidence(raised, raised.text)],
        )


def _what(facts: Facts, tensor: TensorId | None) -> str:
    """What a tensor is: `softmax`, `log_softmax`, `sigmoid`, `logits` (straight from a layer), or something else."""
    maker: Maker | None = computed_by(facts, tensor)
    if isinstance(maker, ModuleCalled):
        kind = facts.modules[maker.module].kind
        known = {"Softmax": "softmax", "Softmax2d": "softmax", "LogSoftmax": "log_softmax", "Sigmoid": "sigmoid"}
        return "logits" if kind in LAYERS else known.get(kind, "")
    if isinstance(maker, Operation):
        name = plain(maker.function)
        return name if name in ("softmax", "log_softmax", "sigmoid") else "logits" if name == "linear" else ""
    return ""


def _words(given: str) -> str:
    return {"softmax": "a softmax", "sigmoid": "a sigmoid", "logits": "a layer, so logits"}.get(given, given)


def _exchanged(facts: Facts, call: LossCall) -> bool:
    states = [facts.tensors.get(one) if one is not None else None for one in (call.prediction, call.target)]
    first, second = states
    return first is not None and second is not None and not first.requires_grad and second.requires_grad
