"""Where the first value that is not finite came from, told from the graph itself: a backward whose loss is not finite
still holds what its forward saved, whether or not somebody looked while the forward ran."""

from __future__ import annotations

from typing import Any

import msgspec

from whygrad.engines.book import Book
from whygrad.engines.pytorch.backward import Pass
from whygrad.engines.pytorch.graph import RAW, Graph, Label
from whygrad.engines.pytorch.tensors import Tensors
from whygrad.engines.pytorch.values import Reader
from whygrad.ledger.events import NotFinite, TensorId
from whygrad.ledger.values import Value

TOLD_LIMIT = 5
"""In so many backwards the first value that is not finite is looked for."""

ELEMENTS_LIMIT = 20_000_000
"""Saved tensors of more elements than this are not looked through."""


class _Seen(msgspec.Struct, eq=False):
    """The first saved tensor that is not finite: in which node's slot, what it holds, which node made it."""

    label: Label
    tensor: Any
    value: Value
    maker: Any


class NotFiniteValues:
    """Looks for them, a few times."""

    def __init__(self, book: Book, reader: Reader, tensors: Tensors, graph: Graph) -> None:
        self.book = book
        self.reader = reader
        self.tensors = tensors
        self.graph = graph
        self._told = 0

    def look(self, entry: Pass) -> None:
        """The loss of a pass that is about to run is not finite."""
        self.reader.alert = True
        if self._told >= TOLD_LIMIT:
            return
        self._told += 1
        nodes = sorted(entry.walk.nodes, key=lambda item: item[0]._sequence_nr())
        labels = dict(nodes)
        tensor: TensorId | None = None
        certain = True
        seen = self._first(nodes, labels)
        if seen is None:  # no node saved it: the last ones made it
            maker, value = (nodes[-1][0] if nodes else None), None
        else:
            maker, value = seen.maker, seen.value
        if maker is None and seen is not None:
            known = self.tensors.find(seen.tensor)
            tensor = None if known is None else known.id
            certain = known is not None
        elif maker is not None:
            maker, certain = self._made(maker, labels)
        label = labels.get(maker)
        self.book.write(
            NotFinite,
            entry.site if label is None else label.site,
            backward=entry.id,
            node=None if label is None else label.id,
            tensor=tensor,
            value=value,
            certain=certain,
        )

    def _first(self, nodes: list[tuple[Any, Label]], labels: dict[Any, Label]) -> _Seen | None:
        for node, label in nodes:
            for slot in self.graph.saves(node):
                for tensor in self._saved(node, slot):
                    value = self.reader.not_finite(tensor, ELEMENTS_LIMIT)
                    if value is not None:
                        maker = node if slot in ("result", "output", "result0") else tensor.grad_fn
                        return _Seen(label, tensor, value, maker if maker in labels else None)
        return None

    def _made(self, node: Any, labels: dict[Any, Label]) -> tuple[Any, bool]:
        """(the node that made it, whether that is sure): back from `node` over nodes that keep no operand of theirs
        and have a single one, such as a sum."""
        while True:
            feeding = [following for following, _ in node.next_functions if following is not None]
            kept = [tensor for slot in self.graph.saves(node) for tensor in self._saved(node, slot)]
            shown = [one for one in feeding if any(_comes_from(tensor, one) for tensor in kept)]
            if shown or len(feeding) != 1 or feeding[0] not in labels:
                return node, len(shown) == len(feeding)
            node = feeding[0]

    def _saved(self, node: Any, slot: str) -> list[Any]:
        """The tensors that a node keeps in a slot, but for those that a hook of the program's packed."""
        held = getattr(node, RAW + slot, None)
        found = []
        for one in held if isinstance(held, tuple) else (held,):
            if getattr(one, "unpack_hook", None) is None and (tensor := getattr(one, "data", None)) is not None:
                found.append(tensor)
        return found


def _comes_from(tensor: Any, node: Any) -> bool:
    """Whether `node` made the tensor, or is the end at this leaf."""
    return tensor.grad_fn is node or getattr(node, "variable", None) is tensor
