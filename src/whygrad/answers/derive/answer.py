"""Derive what a gradient should be from the record of its computation, and hold the observed one against it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import msgspec

from whygrad.answers.derive.agreement import coarsest
from whygrad.answers.derive.budget import EVENT_WORK, REBUILD_WORK, Budget
from whygrad.answers.derive.builders import NotSymbolicError
from whygrad.answers.derive.comparison import Comparison
from whygrad.answers.derive.derivation import Derivation, Status
from whygrad.answers.derive.graph import NotDerivedError
from whygrad.answers.derive.history import History
from whygrad.answers.derive.nodes import foreign_node, other_ways
from whygrad.answers.derive.observed import Written, hooks, observed
from whygrad.answers.derive.rebuild import rebuild
from whygrad.answers.derive.replay import replay
from whygrad.answers.derive.symbolic import formula
from whygrad.ledger import Ledger
from whygrad.ledger.events import GradReturned, GradWritten, TensorId

ASKED_BUDGET = 500_000
"""Microseconds of replaying for one derivation that was asked for."""

REPORT_BUDGET = 50_000
"""Microseconds of work for all derivations of a report."""

PER_TENSOR = 3
"""At most so many different derivations are shown for one tensor, and so many failures are borne with."""

REPORT_NODES = 300
"""A report derives through graphs of at most so many nodes."""


def derive(ledger: Ledger, written: Written) -> Derivation:
    """What this gradient should be, from the record alone.

    It never guesses: where a part of the computation is not known, the status is `not derived` and the reason
    says which part, with its line.
    """
    history = History()
    for event in ledger:
        if event.seq >= written.seq:
            break
        history.add(event)
    return _derive(history, ledger, written, Budget(ASKED_BUDGET))


def derivations(ledger: Ledger, limit: int = 12, budget: int = REPORT_BUDGET) -> dict[TensorId, tuple[Derivation, ...]]:
    """For a report: derivations of the first gradients of at most `limit` tensors, while the budget lasts.

    The budget counts operations (as about microseconds each), so the same ledger always gives the same. What
    could not be derived is left out; what is the same for several backwards is said once, with all its lines.
    """
    found: dict[TensorId, list[Derivation]] = {}
    failures: dict[TensorId, int] = {}
    history = History()
    left = Budget(budget)
    for event in ledger:
        left.spend(EVENT_WORK)
        if left.left <= 0:
            break
        if not isinstance(event, GradWritten | GradReturned):
            history.add(event)
            continue
        so_far = found.get(event.tensor, [])
        if len(so_far) >= PER_TENSOR or (not so_far and len(found) >= limit):
            continue
        began = history.backwards.get(event.backward)
        if failures.get(event.tensor, 0) >= PER_TENSOR or began is None or began.nodes > REPORT_NODES:
            continue
        derivation = _derive(history, ledger, event, left)
        if derivation.status is Status.NOT_DERIVED:
            failures[event.tensor] = failures.get(event.tensor, 0) + 1
        else:
            found[event.tensor] = joined([*so_far, derivation])
    return {tensor: tuple(several) for tensor, several in found.items()}


def joined(several: Iterable[Derivation]) -> list[Derivation]:
    """The same derivation of several backwards once, with the places of all."""
    kept: list[Derivation] = []
    for derivation in several:
        for number, known in enumerate(kept):
            if known.same_as(derivation):
                places = tuple(dict.fromkeys(known.places + derivation.places))
                kept[number] = msgspec.structs.replace(known, places=places)
                break
        else:
            kept.append(derivation)
    return kept


def _derive(history: History, ledger: Ledger, written: Written, budget: Budget) -> Derivation:
    name = ledger.name(written.tensor) or "x"
    empty = Derivation(tensor=written.tensor, name=name, backward=written.backward, status=Status.NOT_DERIVED)
    budget.spend(REBUILD_WORK)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy's, of an empty mean and the like: the program is over
            return _compared(history, ledger, written, budget, empty)
    except NotDerivedError as reason:
        return msgspec.structs.replace(empty, reason=str(reason))


def _compared(history: History, ledger: Ledger, written: Written, budget: Budget, empty: Derivation) -> Derivation:
    began = history.backwards.get(written.backward)
    if began is None:
        raise NotDerivedError("the beginning of the backward was not recorded")
    seen = observed(written)
    foreign = foreign_node(ledger, began, written.tensor, budget)
    if foreign is not None:
        where = ledger.where(foreign.site)
        raise NotDerivedError(f"{foreign.name} ({where}) is custom: no recorded operation says what it computes")
    graph = rebuild(history, ledger, began, written.tensor, budget)
    done = replay(graph)
    results = [result for step in done.moving for result in step.results if result is not None]
    elsewhere = history.tensors[written.tensor].device != "cpu" and seen.dtype == "float32"
    dtype = coarsest([seen.dtype, *(result.dtype for result in results), *(["tf32"] if elsewhere else [])])
    doubt = seen.doubt or graph.doubt or hooks(ledger) or other_ways(ledger, done, written.contributions)
    doubt = doubt or "; ".join(done.solved)
    compare = Comparison(done, seen, dtype, doubt, budget)
    placed = msgspec.structs.replace(empty, places=(graph.where,), shape=done.target.shape)
    try:
        return compare.symbolic(placed, formula(done, ledger.name))
    except NotSymbolicError:
        return compare.numeric(placed)
