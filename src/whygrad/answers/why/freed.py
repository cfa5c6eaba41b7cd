"""A second backward through a freed graph: who freed it, what carried it over, and what to do."""

from __future__ import annotations

import msgspec

from whygrad.answers.why.answer import Sentence
from whygrad.answers.why.failed_code import root_name
from whygrad.answers.why.failure import Failure, headline
from whygrad.answers.why.flow import Flow, Made
from whygrad.answers.why.passes import Pass, nodes_reached, pass_of, pass_text
from whygrad.answers.why.words import code_of, is_name, name_in, quoted
from whygrad.ledger import Ledger
from whygrad.ledger.events import BackwardEnded, Node, NodeId, Operation, TensorId

Reason = tuple[str, Sentence, list[Sentence]]


class Carrier(msgspec.Struct, frozen=True):
    """What took the freed graph into the second pass: a tensor, what made it, and what used it again afterwards."""

    tensor: TensorId
    maker: Made | None
    again: Made | None = None


def explain_freed(ledger: Ledger, failure: Failure) -> Reason:
    """The story of a graph that two passes went through."""
    second = pass_of(ledger, failure.ended.id) if failure.ended is not None else None
    if second is None:
        text = headline(
            ledger, failure, "it went back through a graph whose saved values an earlier backward had freed."
        )
        return "second backward", Sentence(text, (failure.seq,)), []
    first = _first(ledger, second)
    if first is None:
        text = headline(ledger, failure, "the saved values that it needs had been freed before recording began.")
        return "second backward", Sentence(text, (second.seq, failure.seq)), []
    shared = {node for node in first.began.root_nodes if node is not None}.intersection(second.began.root_nodes)
    if shared or set(first.began.roots) & set(second.began.roots):
        return _same_loss(ledger, failure, first, second)
    flow = Flow(ledger, second.seq)
    carrier = _carried_over(ledger, flow, first, second)
    if carrier is not None:
        return _state(ledger, failure, first, second, carrier)
    return _shared_part(ledger, failure, first, second, flow)


def _first(ledger: Ledger, second: Pass) -> Pass | None:
    """The pass that freed what the second one needed: the recorded one, else the last that freed a node of it."""
    if second.ended is not None and second.ended.freed_by is not None:
        return pass_of(ledger, second.ended.freed_by)
    reached = nodes_reached(ledger, second)
    found = None
    for ended in ledger.of(BackwardEnded):
        if ended.seq < second.seq and not reached.keys().isdisjoint(ended.freed):
            found = ended.id
    return pass_of(ledger, found)


# --- the same loss twice ------------------------------------------------------------------------------


def _same_loss(ledger: Ledger, failure: Failure, first: Pass, second: Pass) -> Reason:
    root = root_name(ledger, second.began)
    made = Flow(ledger, second.seq).maker(second.began.roots[0]) if second.began.roots else None
    place = f", which {quoted(ledger, made.site)} computed once" if made is not None else ""
    text = f"this is the second backward from {root}{place}; {pass_text(ledger, first)} had freed its graph."
    advice = (
        f"To go back twice, compute {root} again before the second backward, or call the first one "
        f"({ledger.where(first.began.site)}) with retain_graph=True; the gradients of both then add up."
    )
    return (
        "second backward",
        Sentence(headline(ledger, failure, text), (first.seq, second.seq, failure.seq)),
        [*_stopped_at(ledger, failure), Sentence(advice, (first.seq,))],
    )


# --- state that goes from one step to the next --------------------------------------------------------


def _carried_over(ledger: Ledger, flow: Flow, first: Pass, second: Pass) -> Carrier | None:
    """A result from before the first pass was over that a computation after it used again."""
    over = first.ended.seq if first.ended is not None else first.seq
    found = None
    for root in second.began.roots:
        for _, made in flow.upstream(root):
            if made.seq < over:
                continue
            for operand in made.inputs:
                known = ledger.tensor(operand)
                maker = flow.maker(operand)
                if known is None or known.leaf or maker is None or maker.seq >= over:
                    continue
                if ledger.name(operand):
                    return Carrier(operand, maker, made)
                found = found or Carrier(operand, maker, made)
    return found


def _state(ledger: Ledger, failure: Failure, first: Pass, second: Pass, carrier: Carrier) -> Reason:
    maker, again = carrier.maker, carrier.again
    assert maker is not None
    assert again is not None
    name = name_in(ledger, carrier.tensor, again.site)
    what = name or ledger.describe(carrier.tensor)
    root = root_name(ledger, second.began)
    text = f"{root} goes back through {what} into the graph that {pass_text(ledger, first)} had freed."
    events = (maker.seq, first.seq, again.seq, second.seq, failure.seq)
    node = _node_at(ledger, first, maker)
    made_it = f"{quoted(ledger, maker.site)} made {what}"
    same_line = code_of(ledger, again.site) == code_of(ledger, maker.site)
    used_it = "used it again after that pass" if same_line else f"{quoted(ledger, again.site)} used it after that pass"
    story = f"{made_it} before {pass_text(ledger, first)}, and {'the same line ' if same_line else ''}{used_it}."
    sentences = [Sentence(story, (maker.seq, first.seq, again.seq))]
    sentences += _stopped_at(ledger, failure, node)
    if not _is_loop(first, second, maker, again):
        advice = (
            f"Sum the two losses and call backward once, call the first one ({ledger.where(first.began.site)}) with "
            f"retain_graph=True, or use {what}.detach() if the gradient is to stop there."
        )
        return (
            "second backward",
            Sentence(headline(ledger, failure, text), events),
            [*sentences, Sentence(advice, (first.seq,))],
        )
    cut = f"`{name} = {name}.detach()` after the backward" if is_name(name) else f"detach {what} after the backward"
    advice = (
        f"If {what} is state that goes from one step to the next, cut its history there: {cut}. If the gradient "
        "should go back through the earlier steps too, sum their losses and call backward once."
    )
    return (
        "second backward",
        Sentence(headline(ledger, failure, text), events),
        [*sentences, Sentence(advice, (again.seq,))],
    )


def _is_loop(first: Pass, second: Pass, maker: Made, again: Made) -> bool:
    """Whether the same lines ran twice."""
    return maker.site == again.site or (first.began.site is not None and first.began.site == second.began.site)


def _node_at(ledger: Ledger, entry: Pass, made: Made) -> Node | None:
    """A node of the pass that the computation made."""
    for reached in nodes_reached(ledger, entry):
        node = ledger.node(reached)
        if node is not None and node.site == made.site:
            return node
    return None


# --- two losses with a common part --------------------------------------------------------------------


def _shared_part(ledger: Ledger, failure: Failure, first: Pass, second: Pass, flow: Flow) -> Reason:
    """Both losses were computed before the first pass, from one value: the node where the graphs meet."""
    tensor, node = _meeting(ledger, first, second)
    maker = flow.maker(tensor) if tensor is not None else None
    what = ledger.describe(tensor) if tensor is not None else ""
    if not what and node is not None:
        what = f"what {quoted(ledger, node.site)} computed"
    roots = f"{root_name(ledger, second.began)} and {root_name(ledger, first.began)}"
    text = f"{roots} were both computed from {what or 'one value'}, whose graph {pass_text(ledger, first)} had freed."
    sentences = []
    if node is not None and tensor is not None:
        made = f", made by {quoted(ledger, node.site)}" if ledger.name(tensor) else ""
        sentences.append(Sentence(f"The shared node is {node.name}{made}.", (node.seq,)))
    sentences += _stopped_at(ledger, failure, node)
    advice = (
        f"Sum the two losses and call backward once, or call the first one ({ledger.where(first.began.site)}) "
        "with retain_graph=True."
    )
    events = (first.seq, second.seq, failure.seq) if maker is None else (maker.seq, first.seq, second.seq, failure.seq)
    return (
        "second backward",
        Sentence(headline(ledger, failure, text), events),
        [*sentences, Sentence(advice, (first.seq,))],
    )


def _meeting(ledger: Ledger, first: Pass, second: Pass) -> tuple[TensorId | None, Node | None]:
    """The value that is in both graphs, nearest to the second root, and the node that made it."""
    old = nodes_reached(ledger, first)
    new = nodes_reached(ledger, second)
    frontier = [node for node, above in new.items() if node in old and (above is None or above not in old)]
    results: dict[NodeId, TensorId] = {}
    for operation in ledger.of(Operation):
        if operation.seq > second.seq:
            break
        if operation.node in frontier and operation.outputs and operation.node is not None:
            results[operation.node] = operation.outputs[0]
    named = next((node for node in frontier if node in results and ledger.name(results[node])), None)
    chosen = named if named is not None else next((node for node in frontier if node in results), None)
    if chosen is None and frontier:
        chosen = frontier[0]
    blamed = second.ended.blamed if second.ended is not None else None
    return (results.get(chosen) if chosen is not None else None), ledger.node(chosen if chosen is not None else blamed)


def _stopped_at(ledger: Ledger, failure: Failure, told: Node | None = None) -> list[Sentence]:
    """The node that found its saved values gone, unless it has been told of."""
    node = ledger.node(failure.ended.blamed) if failure.ended is not None else None
    if node is None or (told is not None and told.id == node.id):
        return []
    return [
        Sentence(
            f"It stopped at {node.name}, made by {quoted(ledger, node.site)}, whose saved values are gone.", (node.seq,)
        )
    ]
