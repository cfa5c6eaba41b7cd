"""WG404: a softmax that normalises something else than what is summed or scored later."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from whygrad.ledger.events import ModuleCalled, Operation, TensorId, Warned
from whygrad.rules.construction import constructed
from whygrad.rules.facts import Facts, Maker
from whygrad.rules.finding import Edit, Finding, Place, Severity
from whygrad.rules.flow import computed_by, constant, operand
from whygrad.rules.losscalls import CLASS_LOSSES, loss_calls, numbers_of, plain, shape_of
from whygrad.rules.rule import Rule

FUNCTIONS = frozenset({"softmax", "log_softmax"})
PRODUCTS = frozenset({"matmul", "bmm", "mm"})


class SoftmaxOverWrongDimension(Rule):
    """The softmax runs over the batch (or another wrong dimension): samples compete with one another.

    `softmax(dim=0)` of a (batch, classes) tensor makes every *class* sum to one over the batch: the probabilities of a
    sample depend on the other samples, and a batch of one is always sure. In attention, the weights that are
    multiplied with the values have to sum to one over the keys, which is the last dimension of the scores. Without
    `dim`, PyTorch picks 0 for one and three dimensions, 1 otherwise ("Implicit dimension choice for softmax").

    **How to see it.** The rows that the loss, or the weighted sum, goes over do not sum to one.

    **How to put it right.** `dim=1` for (batch, classes), `dim=-1` for attention scores.
    """

    code = "WG404"
    slug = "softmax-over-wrong-dimension"
    intended = "the samples, or the queries, are to compete for one another"
    search = (
        "softmax dim 0 or 1",
        "Implicit dimension choice for softmax has been deprecated",
        "attention weights do not sum to 1",
        "softmax over batch dimension",
    )
    wrong = (
        """
        import torch
        import torch.nn.functional as F
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 3)
        log_probs = F.log_softmax(model(torch.randn(8, 4)), dim=0)  # <- here
        F.nll_loss(log_probs, torch.arange(8) % 3).backward()
        """,
        """
        import torch
        torch.manual_seed(0)
        q, k, v = (torch.randn(2, 5, 4, requires_grad=True) for _ in range(3))
        weights = torch.softmax(q @ k.transpose(1, 2), dim=1)  # <- here
        (weights @ v).pow(2).mean().backward()
        """,
    )
    right = (
        """
        import torch
        import torch.nn.functional as F
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 3)
        log_probs = F.log_softmax(model(torch.randn(8, 4)), dim=-1)
        F.nll_loss(log_probs, torch.arange(8) % 3).backward()
        q, k, v = (torch.randn(2, 5, 4, requires_grad=True) for _ in range(3))
        weights = torch.softmax(q @ k.transpose(1, 2), dim=-1)
        (weights @ v).pow(2).mean().backward()
        pooling = torch.softmax(model(torch.randn(6, 4)), dim=0)
        (pooling.T @ torch.randn(6, 4)).sum().backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        yield from self._in_losses(facts)
        yield from self._in_products(facts)
        for warned in facts.of(Warned):
            if "Implicit dimension choice for" in warned.text and warned.site is not None:
                yield self._implicit(facts, warned)

    def _in_losses(self, facts: Facts) -> Iterator[Finding]:
        for call in loss_calls(facts):
            shape = shape_of(facts, call.prediction)
            target = shape_of(facts, call.target)
            if shape is None or len(shape) < 2 or shape[0] < 2 or target is None:
                continue
            maker = computed_by(facts, call.prediction)
            found = _normalised(facts, maker)
            if found is None:
                continue
            dim, given, place = found
            classes = call.kind in CLASS_LOSSES and len(target) == len(shape) - 1
            if given == shape and classes and dim != 1:
                over = "the batch" if dim == 0 else f"dimension {dim}"
            elif given == shape and len(shape) == 2 and dim == 0 and call.kind in ("kl_div", "binary_cross_entropy"):
                over = "the batch"
            else:
                continue
            assert maker is not None
            sums = _row_sums(facts, call.prediction, shape)
            yield self.finding(
                facts,
                place,
                f"the softmax in front of {call.kind} runs over {over}, not over the classes",
                [
                    f"It normalises dimension {dim} of {shape} on {facts.place(maker.site).where}; {call.kind} on "
                    f"{facts.place(call.call.site).where} takes dimension 1 for the classes.",
                    *sums,
                ],
                why="The probabilities of one sample have to sum to one over its classes.",
                fix="Pass dim=1 (dim=-1 for two dimensions).",
                evidence=[facts.evidence(maker, f"normalised dimension {dim}"), facts.evidence(call.call, "the loss")],
                edits=_edits(facts, maker, "1"),
            )

    def _in_products(self, facts: Facts) -> Iterator[Finding]:
        for event in facts.of(Operation):
            if plain(event.function) not in PRODUCTS or len(event.inputs) != 2:
                continue
            weights = event.inputs[0].tensor
            maker = facts.makers.get(weights) if weights is not None else None
            maker = _before_dropout(facts, maker)
            found = _normalised(facts, maker)
            shape = shape_of(facts, weights)
            if found is None or shape is None or len(shape) < 3 or found[1] != shape or maker is None:
                continue
            dim, _, place = found
            if dim == len(shape) - 1 or shape[dim] == 1 or not _requires_grad(facts, event.outputs[:1]):
                continue
            over = {0: "the batch", len(shape) - 2: "the queries"}.get(dim, f"dimension {dim}")
            yield self.finding(
                facts,
                place,
                f"the attention weights are normalised over {over}, not over the keys",
                [
                    f"The softmax runs over dimension {dim} of {shape}; the product on "
                    f"{facts.place(event.site).where} sums over the last dimension, where the weights do not sum to 1."
                ],
                why="In `weights @ values`, the last dimension of the weights is summed over.",
                fix="Pass dim=-1.",
                evidence=[
                    facts.evidence(maker, f"normalised dimension {dim}"),
                    facts.evidence(event, "summed over the last dimension"),
                ],
                severity=Severity.WARNING,
                edits=_edits(facts, maker, "-1"),
            )

    def _implicit(self, facts: Facts, warned: Warned) -> Finding:
        return self.finding(
            facts,
            warned.site if warned.site is not None else facts.place(None),
            "a softmax without dim: PyTorch picked the dimension",
            [f"It warned: {warned.text.splitlines()[0]} For three dimensions it takes 0, the batch."],
            why="The implicit choice is 0 for one and three dimensions and 1 otherwise.",
            fix="Pass dim (dim=-1 for the last).",
            evidence=[facts.evidence(warned, "the dimension was chosen implicitly")],
            severity=Severity.WARNING,
        )


def _before_dropout(facts: Facts, maker: Maker | None) -> Maker | None:
    """What gave the weights that a dropout then thinned out."""
    for _ in range(3):
        if isinstance(maker, ModuleCalled):
            module = facts.modules.get(maker.module)
            if module is None or not module.kind.startswith("Dropout") or not maker.inputs:
                return maker
            given = maker.inputs[0].tensor
        elif isinstance(maker, Operation) and plain(maker.function) == "dropout":
            given = maker.inputs[0].tensor
        else:
            return maker
        maker = facts.makers.get(given) if given is not None else None
    return maker


def _normalised(facts: Facts, maker: Maker | None) -> tuple[int, tuple[int, ...], Place] | None:
    """The dimension that a softmax normalised, its input's shape, and where it is to be changed."""
    if isinstance(maker, Operation) and plain(maker.function) in FUNCTIONS and maker.inputs:
        shape = shape_of(facts, maker.inputs[0].tensor)
        dim = constant(operand(maker, 1, "dim"))
        if shape is None or not isinstance(dim, int):
            return None
        return dim % len(shape), shape, facts.place(maker.site)
    if isinstance(maker, ModuleCalled) and maker.inputs:
        module = facts.modules.get(maker.module)
        found = re.search(r"dim=(-?\d+)", module.config) if module is not None else None
        if module is None or found is None or module.kind not in ("Softmax", "LogSoftmax"):
            return None
        built = constructed(facts, module)
        shape = maker.inputs[0].shape
        return int(found[1]) % len(shape), shape, built.place if built is not None else facts.place(maker.site)
    return None


def _row_sums(facts: Facts, tensor: TensorId | None, shape: tuple[int, ...]) -> list[str]:
    numbers = numbers_of(facts, tensor)
    if numbers is None or len(shape) != 2 or min(numbers) < 0:
        return []
    sums = [sum(numbers[i * shape[1] : (i + 1) * shape[1]]) for i in range(min(shape[0], 3))]
    return [f"The first rows sum to {', '.join(f'{one:.3g}' for one in sums)} instead of 1."]


def _requires_grad(facts: Facts, outputs: tuple[TensorId, ...]) -> bool:
    return any(one in facts.tensors and facts.tensors[one].requires_grad for one in outputs)


def _edits(facts: Facts, maker: Maker, dim: str) -> list[Edit]:
    site = facts.site(maker.site)
    source = facts.source_of(maker.site)
    node = source.expression(site) if site is not None and isinstance(maker, Operation) else None
    if not isinstance(node, ast.Call):
        return []
    given = next((one.value for one in node.keywords if one.arg == "dim"), None)
    if given is None or given.end_lineno is None or given.end_col_offset is None:
        return []
    return [Edit(source.path, given.lineno, given.col_offset, given.end_lineno, given.end_col_offset, dim)]
