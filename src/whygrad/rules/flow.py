"""The graph behind a value: which node it came from, past those that only rearrange what they are given."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from whygrad.ledger.events import ModuleCalled, Node, NodeId, Operand, Operation, TensorId
from whygrad.ledger.values import Value
from whygrad.rules.facts import Facts, Maker, inputs_of
from whygrad.rules.losscalls import plain

REARRANGING_NODES = frozenset(
    [
        "View",
        "UnsafeView",
        "ReshapeAlias",
        "Reshape",
        "Squeeze",
        "Unsqueeze",
        "Transpose",
        "T",
        "Permute",
        "Clone",
        "ToCopy",
        "Alias",
        "Expand",
        "Select",
        "Slice",
        "Index",
        "Contiguous",
        "AsStrided",
        "Unbind",
        "Split",
        "SplitWithSizes",
        "Narrow",
        "IndexSelect",
    ]
)
REARRANGING = frozenset(
    [
        "view",
        "reshape",
        "view_as",
        "reshape_as",
        "squeeze",
        "unsqueeze",
        "transpose",
        "t",
        "T",
        "permute",
        "contiguous",
        "clone",
        "to",
        "float",
        "double",
        "half",
        "flatten",
        "unflatten",
        "expand",
        "expand_as",
        "swapaxes",
        "movedim",
        "getitem",
        "select",
        "narrow",
        "index_select",
        "detach",
        "type",
        "requires_grad_",
        "float_",
        "cpu",
        "cuda",
        "mT",
        "H",
        "ravel",
        "chunk",
        "split",
        "unbind",
        "type_as",
    ]
)
"""Operations that only move, select or convert what they are given."""


def kind_of(node: Node) -> str:
    """`LogSoftmax` of `LogSoftmaxBackward0`."""
    return re.sub(r"Backward\d*$", "", node.name)


def behind(facts: Facts, node: NodeId | None) -> Node | None:
    """The nearest node, from `node` on, that computes something."""
    for _ in range(50):
        known = facts.nodes.get(node) if node is not None else None
        if known is None:
            return None
        if kind_of(known) not in REARRANGING_NODES or not known.edges:
            return known
        node = known.edges[0].node
    return None


def computed_by(facts: Facts, tensor: TensorId | None, limit: int = 50) -> Maker | None:
    """What computed a tensor, past operations and modules that only rearrange."""
    for _ in range(limit):
        maker = facts.makers.get(tensor) if tensor is not None else None
        if maker is None:
            return None
        rearranges = (isinstance(maker, Operation) and plain(maker.function) in REARRANGING) or (
            isinstance(maker, ModuleCalled)
            and (module := facts.modules.get(maker.module)) is not None
            and module.kind in ("Flatten", "Unflatten", "Identity")
        )
        given = next(inputs_of(maker), None)
        if not rearranges or given is None or given == tensor:
            return maker
        tensor = given
    return None


def chain_from(facts: Facts, tensor: TensorId | None, limit: int = 30) -> Iterator[tuple[TensorId, Maker]]:
    """A tensor and its first inputs in turn, each with what made it."""
    for _ in range(limit):
        maker = facts.makers.get(tensor) if tensor is not None else None
        if tensor is None or maker is None:
            return
        yield tensor, maker
        given = next(inputs_of(maker), None)
        if given == tensor:
            return
        tensor = given


def through_rearranging(facts: Facts, tensor: TensorId) -> Iterator[TensorId]:
    """The tensor, and those that were only rearranged from it, in order."""
    seen = {tensor}
    queue = [tensor]
    for current in queue:
        yield current
        for user in facts.users.get(current, ()):
            if isinstance(user, Operation) and plain(user.function) in REARRANGING:
                for output in user.outputs:
                    if output not in seen:
                        seen.add(output)
                        queue.append(output)


def operand(call: Operation, position: int, keyword: str) -> Operand | None:
    """An operand by its keyword, or its position among those without one."""
    named = next((one for one in call.inputs if one.keyword == keyword), None)
    if named is not None:
        return named
    plain_ones = [one for one in call.inputs if not one.keyword]
    return plain_ones[position] if 0 <= position < len(plain_ones) else None


def constant(given: Operand | None) -> object:
    """What an operand is, where it is a constant or a tuple of constants; None otherwise."""
    if given is None:
        return None
    if given.items is not None:
        return tuple(constant(item) for item in given.items)
    return None if given.constant is msgspec.UNSET else given.constant


def is_zero(value: Value | None) -> bool:
    return value is not None and value.magnitude == 0.0
