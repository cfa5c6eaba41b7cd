"""Why a backward pass did not reach a leaf: the way was cut, or the loss was never computed from it."""

from __future__ import annotations

from whygrad.answers.why.answer import Moment, Sentence
from whygrad.answers.why.cuts import cut_sentences, cut_short
from whygrad.answers.why.failed_code import root_name
from whygrad.answers.why.flow import Flow, Made
from whygrad.answers.why.passes import Pass, nodes_above, pass_text
from whygrad.answers.why.terms import custom_function
from whygrad.answers.why.words import code_of, joined, quoted, several
from whygrad.ledger import Ledger
from whygrad.ledger.events import Module, ModuleCalled, Node, RequiresGradChanged, TensorId

Reason = tuple[str, Sentence, list[Sentence]]

SHOWN = 3


def explain_unreached(
    ledger: Ledger, subject: str, owner: str, tensor: TensorId, entry: Pass, moment: Moment
) -> Reason:
    """Why pass `entry` wrote nothing into the buffer of `tensor`, a leaf that requires grad."""
    backward = pass_text(ledger, entry)
    if tensor in entry.began.leaves:
        return _nothing_arrived(ledger, subject, owner, tensor, entry)
    flow = Flow(ledger, entry.seq)
    roots = entry.began.roots
    ways = [flow.cuts(root, tensor) for root in roots]
    cuts = tuple(made for way in ways for made in way or ())
    if cuts:
        cut = cut_short(ledger, cuts[0])
        root = root_name(ledger, entry.began)
        text = f"{subject}: {backward} did not reach {owner}; the way back from {root} was cut by {cut}."
        sentences = cut_sentences(ledger, cuts)
        return f"cut: {cuts[0].cut or 'unknown'}", Sentence(text, (entry.seq, cuts[0].seq)), sentences
    if any(way is not None for way in ways) and flow.uses.get(tensor):
        return _connected(ledger, subject, owner, tensor, entry, flow)
    return _not_used(ledger, subject, owner, tensor, entry, flow, moment)


def _nothing_arrived(ledger: Ledger, subject: str, owner: str, tensor: TensorId, entry: Pass) -> Reason:
    feeders = [node for feeder in nodes_above(ledger, entry, tensor) if (node := ledger.node(feeder)) is not None]
    text = f"{subject}: {pass_text(ledger, entry)} came to {owner}, but no gradient arrived there."
    sentences = []
    if feeders:
        places = several([_function(ledger, node) for node in feeders], SHOWN)
        sentences.append(
            Sentence(
                f"It would have come through {places}, whose backward returned None for {owner}.",
                tuple(node.seq for node in feeders[:SHOWN]),
            )
        )
    return "no gradient arrived", Sentence(text, (entry.seq,)), sentences


def _function(ledger: Ledger, node: Node) -> str:
    """The operation behind a node; a Function of the user's own by its name."""
    custom = custom_function(node)
    return f"{custom}.apply ({ledger.where(node.site)})" if custom else quoted(ledger, node.site)


def _connected(ledger: Ledger, subject: str, owner: str, tensor: TensorId, entry: Pass, flow: Flow) -> Reason:
    """The loss was computed from the leaf, no cut was seen, and yet the graph does not lead there."""
    first = flow.uses[tensor][0]
    switched = next(
        (
            event
            for event in ledger.of(RequiresGradChanged)
            if event.tensor == tensor and event.to and event.seq > first.seq
        ),
        None,
    )
    backward, root = pass_text(ledger, entry), root_name(ledger, entry.began)
    if switched is not None and switched.seq < entry.seq:
        text = (
            f"{subject}: {backward} did not reach {owner}; {quoted(ledger, first.site)} used it before "
            f"{quoted(ledger, switched.site)} made it require grad."
        )
        return (
            "required too late",
            Sentence(text, (entry.seq, first.seq, switched.seq)),
            [Sentence("Only operations that run after that count for its gradient.", (switched.seq,))],
        )
    derived = [made for root_id in entry.began.roots for made in _derivatives(flow, root_id)]
    if derived:
        text = (
            f"{subject}: {backward} did not reach {owner}; {root} was computed from the derivative that "
            f"{quoted(ledger, derived[0].site)} returned, and the graph of that derivative does not lead to {owner}."
        )
        hint = f"Either the derivative does not depend on {owner}, or it was asked for without create_graph=True."
        return "not in the derivative", Sentence(text, (derived[0].seq, entry.seq)), [Sentence(hint, (derived[0].seq,))]
    used = quoted(ledger, first.site)
    text = f"{subject}: {backward} did not reach {owner}, although {root} was computed from it; {used} used it."
    return (
        "not reached",
        Sentence(text, (entry.seq, first.seq)),
        [Sentence("Where the way back was lost was not recorded (inside library code, perhaps).", (first.seq,))],
    )


def _derivatives(flow: Flow, root: TensorId) -> list[Made]:
    """The calls of autograd.grad whose results the root was computed from."""
    return [made for _, made in flow.upstream(root) if made.function.endswith("autograd.grad")]


def _not_used(
    ledger: Ledger, subject: str, owner: str, tensor: TensorId, entry: Pass, flow: Flow, moment: Moment
) -> Reason:
    """The loss was not computed from the leaf, as far as was recorded."""
    backward, root = pass_text(ledger, entry), root_name(ledger, entry.began)
    before = [made for made in flow.uses.get(tensor, ()) if made.seq < entry.seq]
    head = f"{subject}: {backward} did not reach {owner}"
    if not before:
        later = [made for made in Flow(ledger, moment.seq).uses.get(tensor, ()) if made.seq > entry.seq]
        if later:
            text = f"{head}; {owner} is first used afterwards, at {ledger.where(later[0].site)}."
            return "used later", Sentence(text, (entry.seq, later[0].seq)), []
        why = _module_not_called(ledger, tensor)
        text = f"{head}: nothing that {root} was computed from used {owner}{why}."
        return "never used", Sentence(text, (entry.seq,)), _root_sentence(ledger, entry, flow)
    places = several(_places(ledger, before), SHOWN)
    events = (entry.seq, *(made.seq for made in before[:SHOWN]))
    if all(made.mode != "on" or made.cut in ("no_grad", "inference_mode") for made in before):
        text = f"{head}; {owner} was only used with grad mode off: {places}."
        return "used under no_grad", Sentence(text, events), []
    if root_is_leaf := (entry.began.root_nodes and entry.began.root_nodes[0] is None):
        text = f"{head}: it started from {root}, a leaf without history, which leads to nothing else."
    else:
        text = f"{head}; {owner} was used by {places}, but {root} was not computed from the result."
    sentences = []
    ends = _value_exits(flow, tensor)
    if ends:
        exits = several([quoted(ledger, made.site) for made in ends], SHOWN)
        sentences.append(
            Sentence(
                f"Values that were computed from {owner} left the graph at {exits}.",
                tuple(made.seq for made in ends[:SHOWN]),
            )
        )
    sentences += _root_sentence(ledger, entry, flow)
    return ("root is a leaf" if root_is_leaf else "not in the loss"), Sentence(text, events), sentences


def _places(ledger: Ledger, uses: list[Made]) -> list[str]:
    """The uses by their lines; a module's own call says more than the expression that called it."""
    texts = []
    for made in uses:
        code = code_of(ledger, made.site)
        if made.module and made.module not in code:
            texts.append(f"{made.module} in `{code}` ({ledger.where(made.site)})")
        else:
            texts.append(quoted(ledger, made.site))
    return list(dict.fromkeys(texts))


def _value_exits(flow: Flow, tensor: TensorId) -> list[Made]:
    """Where something that was computed from the tensor lost its history."""
    descendants = flow.computed_from(tensor)
    found = {
        made.seq: made
        for descendant in descendants
        for made in flow.uses.get(descendant, ())
        if any(flow.loses_history(made, output, descendants) for output in made.outputs)
    }
    return [found[seq] for seq in sorted(found)]


def _module_not_called(ledger: Ledger, tensor: TensorId) -> str:
    """For a parameter: that its module was never called."""
    called = {call.module for call in ledger.of(ModuleCalled)}
    for module in ledger.of(Module):
        if any(parameter == tensor for _, parameter in module.parameters) and module.id not in called:
            return f" ({module.path or module.kind} was never called)"
    return ""


def _root_sentence(ledger: Ledger, entry: Pass, flow: Flow) -> list[Sentence]:
    """What the loss was computed from, for a reader who expected the leaf among it."""
    leaves = [ledger.describe(leaf) for leaf in entry.began.leaves]
    if leaves:
        return [Sentence(f"It did reach {several(leaves, SHOWN)}.", (entry.seq,))]
    sources = [made for root in entry.began.roots for made in [flow.maker(root)] if made is not None]
    if sources:
        made = sources[0]
        inputs = [ledger.describe(operand) for operand in made.inputs if operand > 0]
        came = f" from {joined(inputs[:SHOWN])}" if inputs else ""
        return [
            Sentence(
                f"{root_name(ledger, entry.began)} was computed by {quoted(ledger, made.site)}{came}.", (made.seq,)
            )
        ]
    return []
