"""Calls that PyTorch refuses with one line: no history, a leaf written in place, a loss that is not a scalar, ..."""

from __future__ import annotations

from collections.abc import Callable

from whygrad.answers.why.answer import Moment, Sentence
from whygrad.answers.why.cuts import cut_sentences, cut_short
from whygrad.answers.why.failed_code import operands, receiver, root_of
from whygrad.answers.why.failure import Failure, headline
from whygrad.answers.why.flow import Flow
from whygrad.answers.why.history import requires_grad_at, why_no_history
from whygrad.answers.why.passes import pass_of
from whygrad.answers.why.words import quoted, shape_text
from whygrad.ledger import Ledger
from whygrad.ledger.events import SiteId, Tensor

Reason = tuple[str, Sentence, list[Sentence]]


def explain_no_grad_fn(ledger: Ledger, failure: Failure) -> Reason:
    """backward() on a tensor without history: the line where it was cut, or that nothing required grad."""
    known = _root(ledger, failure)
    if known is None:
        text = "backward() was called on a tensor that has no history."
        return "no history", Sentence(headline(ledger, failure, text), (failure.seq,)), []
    found = why_no_history(ledger, known, Moment(seq=failure.seq, text="then"))
    name = _called(ledger, failure, known)
    via = ledger.site(found.via)
    if via is not None and name.strip("`") not in via.code:
        name = f"{name}, computed by {quoted(ledger, found.via)},"
    text = headline(ledger, failure, f"{name} has no history: {found.cause}.")
    return f"no history ({found.reason})", Sentence(text, (*found.events, failure.seq)), list(found.more)


def explain_leaf_in_place(ledger: Ledger, failure: Failure) -> Reason:
    """A leaf that requires grad was written in place while grad mode was on."""
    named = [(name, known) for name, known in operands(ledger, failure) if known.leaf and known.requires_grad]
    text = f"{quoted(ledger, failure.site)} writes in place into a leaf that requires grad."
    events: tuple[int, ...] = (failure.seq,)
    sentences = []
    views = [(name, known) for name, known in operands(ledger, failure) if not known.leaf]
    if "view of a leaf" in failure.text and views:
        name, view = views[0]
        text = f"{quoted(ledger, failure.site)} writes in place into {name}, a view of a leaf that requires grad."
        events = (view.seq, failure.seq)
        sentences.append(Sentence(f"{quoted(ledger, view.site)} made {name}.", (view.seq,)))
    elif named:
        name, leaf = named[0]
        text = f"{quoted(ledger, failure.site)} writes in place into {name}, a leaf that requires grad."
        events = (leaf.seq, failure.seq)
        if leaf.site is not None and leaf.origin == "created":
            sentences.append(Sentence(f"{quoted(ledger, leaf.site)} made {name}.", (leaf.seq,)))
    sentences += [
        _note(
            failure,
            "A write that autograd follows would make the leaf a result, and its gradient would have nowhere to go.",
        ),
        _note(failure, "To update it by hand, write under `with torch.no_grad():`; otherwise compute out of place."),
    ]
    return "leaf written in place", Sentence(headline(ledger, failure, text), events), sentences


def explain_not_scalar(ledger: Ledger, failure: Failure) -> Reason:
    """backward() without a gradient argument on a tensor of more than one element."""
    known = _root(ledger, failure)
    advice = _note(
        failure, "Reduce it first (.mean() or .sum()), or pass backward(gradient=...): a weight for each element."
    )
    if known is None:
        text = "backward() was called on a tensor of more than one element, and it starts from one number."
        return "not a scalar", Sentence(headline(ledger, failure, text), (failure.seq,)), [advice]
    name = _called(ledger, failure, known)
    text = f"{name} has shape {shape_text(known.shape)}, and backward() starts from one number."
    maker = Flow(ledger, failure.seq).maker(known.id)
    made = []
    if maker is not None and name != f"`{_code(ledger, maker.site)}`":
        made = [Sentence(f"{quoted(ledger, maker.site)} gave it that shape.", (maker.seq,))]
    return "not a scalar", Sentence(headline(ledger, failure, text), (known.seq, failure.seq)), [*made, advice]


def explain_unused(ledger: Ledger, failure: Failure) -> Reason:
    """autograd.grad was asked for a tensor that the outputs were not computed from."""
    entry = pass_of(ledger, failure.ended.id) if failure.ended is not None else None
    advice = _note(failure, "allow_unused=True gives None for such tensors instead of an error.")
    flow = Flow(ledger, failure.seq)
    for tensor in (entry.began.inputs or ()) if entry is not None else ():
        assert entry is not None
        ways = [flow.cuts(root, tensor) for root in entry.began.roots]
        cuts = tuple(made for way in ways for made in way or ())
        name = ledger.describe(tensor)
        if cuts:
            text = headline(ledger, failure, f"the way back to {name} was cut by {cut_short(ledger, cuts[0])}.")
            return f"cut: {cuts[0].cut}", Sentence(text, (cuts[0].seq, failure.seq)), cut_sentences(ledger, cuts)
        if all(way is None for way in ways):
            text = headline(
                ledger, failure, f"a gradient was asked for {name}, and the outputs were not computed from it."
            )
            return "unused input", Sentence(text, (entry.seq, failure.seq)), [advice]
    text = headline(ledger, failure, "a gradient was asked for a tensor that the outputs were not computed from.")
    return "unused input", Sentence(text, (failure.seq,)), [advice]


def explain_numpy(ledger: Ledger, failure: Failure) -> Reason:
    """numpy() on a tensor that requires grad."""
    name, known = _first(ledger, failure, lambda known: known.requires_grad)
    text = f"{name or 'the tensor'} requires grad, and an array could not carry its history."
    advice = _note(failure, "Where the values alone are wanted, use .detach().numpy(); the gradient stops there.")
    return (
        "numpy of a tensor with history",
        Sentence(headline(ledger, failure, text), _events(known, failure)),
        [advice],
    )


def explain_non_leaf_optimized(ledger: Ledger, failure: Failure) -> Reason:
    """An optimizer was given a result instead of a leaf."""
    name, known = _first(ledger, failure, lambda known: not known.leaf)
    text = "an optimizer was given a tensor that is not a leaf, and it can update leaves only."
    if known is not None:
        made = quoted(ledger, known.site)
        text = f"{name} is not a leaf but the result of {made}, and an optimizer updates leaves only."
    advice = _note(
        failure,
        "Make it with the right device= and dtype= from the start, or call .detach().requires_grad_() on the result.",
    )
    return "not a leaf", Sentence(headline(ledger, failure, text), _events(known, failure)), [advice]


def explain_inference(ledger: Ledger, failure: Failure) -> Reason:
    """A tensor made in inference mode was used where autograd must save it."""
    flow = Flow(ledger, failure.seq)
    text = "a tensor that was made in inference mode cannot be saved for a backward."
    events: tuple[int, ...] = (failure.seq,)
    for name, known in operands(ledger, failure):
        maker = flow.maker(known.id)
        if maker is not None and "inference" in (maker.cut, maker.cut.removesuffix("_mode"), maker.mode):
            text = f"{quoted(ledger, maker.site)} made {name} in inference mode, so it cannot be saved for a backward."
            events = (maker.seq, failure.seq)
            break
    advice = _note(failure, "Make it under torch.no_grad() instead, or use its .clone() outside the block.")
    return "inference tensor", Sentence(headline(ledger, failure, text), events), [advice]


def explain_integer_grad(ledger: Ledger, failure: Failure) -> Reason:
    """requires_grad on integers."""
    text = f"{quoted(ledger, failure.site)} asks for a gradient of integers; only floating-point tensors can have one."
    advice = _note(failure, "Write the values with a point (3.0), or pass dtype=torch.float32.")
    return "integer dtype", Sentence(headline(ledger, failure, text), (failure.seq,)), [advice]


def explain_gradcheck(ledger: Ledger, failure: Failure) -> Reason:
    """gradcheck compares with differences, which single precision cannot give."""
    name, known = _first(ledger, failure, lambda known: known.dtype in ("float32", "float16", "bfloat16"))
    text = f"the gradients do not agree with differences of the outputs. {failure.first_line.rstrip(',.')}."
    if known is None:
        return "gradcheck", Sentence(headline(ledger, failure, text), (failure.seq,)), []
    more = (
        f"{name} has dtype {known.dtype}: its rounding alone is larger than gradcheck's tolerance. Give it float64 "
        f"inputs ({name}.double(), and the module's too) before drawing a conclusion."
    )
    return (
        "gradcheck",
        Sentence(headline(ledger, failure, text), _events(known, failure)),
        [Sentence(more, (known.seq,))],
    )


# --- shared -------------------------------------------------------------------------------------------


def _root(ledger: Ledger, failure: Failure) -> Tensor | None:
    """The tensor that the failed backward was to start from."""
    entry = pass_of(ledger, failure.ended.id) if failure.ended is not None else None
    if entry is None or not entry.began.roots:
        return ledger.tensor(root_of(ledger, failure))
    moment = Moment(seq=failure.seq, text="then")
    roots = [known for root in entry.began.roots if (known := ledger.tensor(root)) is not None]
    return next((known for known in roots if not requires_grad_at(ledger, known, moment)), roots[0] if roots else None)


def _called(ledger: Ledger, failure: Failure, known: Tensor) -> str:
    """The root as the failed line calls it."""
    code = receiver(ledger, failure)
    if code and (code in ledger.names(known.id) or not ledger.name(known.id)):
        return code if code.isidentifier() else f"`{code}`"
    return ledger.describe(known.id)


def _first(ledger: Ledger, failure: Failure, wanted: Callable[[Tensor], bool]) -> tuple[str, Tensor | None]:
    return next(((name, known) for name, known in operands(ledger, failure) if wanted(known)), ("", None))


def _events(known: Tensor | None, failure: Failure) -> tuple[int, ...]:
    return (failure.seq,) if known is None else (known.seq, failure.seq)


def _note(failure: Failure, text: str) -> Sentence:
    return Sentence(text, (failure.seq,))


def _code(ledger: Ledger, site: SiteId | None) -> str:
    known = ledger.site(site)
    return known.code if known is not None else ""
