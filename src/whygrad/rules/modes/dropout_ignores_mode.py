"""WG304: dropout that stays on in evaluation."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import msgspec

from whygrad.ledger.events import DataChanged, ModuleCalled, Operand, Operation, OptimizerStepped
from whygrad.rules.construction import constructed
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Edit, Finding, Place
from whygrad.rules.losscalls import plain
from whygrad.rules.modulecalls import DROPPING, class_in_source, enclosing, mode_matters, outermost_calls
from whygrad.rules.rule import Rule

FUNCTIONS: dict[str, tuple[str, int]] = {
    "dropout": ("p", 1),
    "dropout1d": ("p", 1),
    "dropout2d": ("p", 1),
    "dropout3d": ("p", 1),
    "alpha_dropout": ("p", 1),
    "feature_alpha_dropout": ("p", 1),
    "scaled_dot_product_attention": ("dropout_p", 4),
    "multi_head_attention_forward": ("dropout_p", 10),
}
"""Functions that drop elements: the argument that says how many, and its position."""

ATTENTION = "scaled_dot_product_attention"


class DropoutIgnoresMode(Rule):
    """Dropout stays on in evaluation: the same input gives another result each time.

    `model.eval()` reaches registered `nn.Dropout` modules and nothing else. `F.dropout(x, p)` has `training=True` by
    default; `F.scaled_dot_product_attention(..., dropout_p=p)` drops whenever `dropout_p` is not zero; an
    `nn.Dropout(p)` made inside `forward`, or kept in a plain Python list, is never told of the mode.

    **How to see it.** Elements are dropped inside a module that was called with `training=False`.

    **How to put it right.** Pass `training=self.training`, or `dropout_p=self.p if self.training else 0.0`, or make
    the `nn.Dropout` in the constructor.
    """

    code = "WG304"
    slug = "dropout-ignores-mode"
    intended = "dropout is meant to stay on (Monte Carlo dropout)"
    search = (
        "validation loss different every time",
        "model.eval() does not turn off dropout",
        "F.dropout training=self.training",
        "scaled_dot_product_attention dropout_p eval",
        "output not deterministic in eval mode",
    )
    wrong = (
        """
        import torch
        import torch.nn.functional as F
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 2)

            def forward(self, x):
                return self.fc(F.dropout(x, 0.5))  # <- here

        net = Net().eval()
        with torch.no_grad():
            print(net(torch.ones(3, 4)))
        """,
        """
        import torch
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 2)

            def forward(self, x):
                return nn.Dropout(0.5)(self.fc(x))  # <- here

        net = Net().eval()
        with torch.no_grad():
            print(net(torch.ones(3, 4)))
        """,
    )
    right = (
        """
        import torch
        import torch.nn.functional as F
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc, self.drop = nn.Linear(4, 4), nn.Dropout(0.5)

            def forward(self, x):
                h = self.drop(F.dropout(self.fc(x), 0.5, training=self.training))
                h = h[:, None]
                return F.scaled_dot_product_attention(h, h, h, dropout_p=0.5 if self.training else 0.0)

        net = Net()
        net(torch.ones(3, 4)).sum().backward()
        net.eval()
        with torch.no_grad():
            print(net(torch.ones(3, 4)))
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        for event in facts.events:
            if isinstance(event, Operation) and plain(event.function) in FUNCTIONS:
                yield from self._function(facts, event)
            elif isinstance(event, ModuleCalled) and event.training and event.depth:
                yield from self._module(facts, event)

    def _function(self, facts: Facts, event: Operation) -> Iterator[Finding]:
        name = plain(event.function)
        on = _on(facts, event)
        if not on:
            return
        outer = enclosing(facts, event)
        if outer is None or outer.training:
            return
        module = facts.modules[outer.module]
        where = module.path or f"the {module.kind}"
        argument = FUNCTIONS[name][0]
        if name == ATTENTION:
            fix = f"Pass {argument}={on} if self.training else 0.0."
        else:
            fix = "Pass training=self.training."
        yield self.finding(
            facts,
            event.site if event.site is not None else facts.place(outer.site),
            f"{name} drops elements although {where} is in evaluation mode",
            [
                f"{where} ({module.kind}) was called with training=False on {facts.place(outer.site).where}; inside, "
                f"{name} ran with {argument}={on}.",
                *_differences(facts, outer),
            ],
            why=f"eval() reaches registered Dropout modules; {name} is a function and only sees its arguments.",
            fix=fix,
            evidence=[
                facts.evidence(event, f"{name} dropped elements"),
                facts.evidence(outer, f"inside a call of {where} with training=False"),
            ],
            subjects=[where],
            edits=_edits(facts, event),
        )

    def _module(self, facts: Facts, event: ModuleCalled) -> Iterator[Finding]:
        module = facts.modules.get(event.module)
        if module is None or not DROPPING.match(module.kind) or not mode_matters(facts, module):
            return
        outer = enclosing(facts, event)
        if outer is None or outer.training:
            return
        around = facts.modules[outer.module]
        if not facts.source_of(outer.site).path:
            return
        registered = bool(module.path) and module.path.startswith(f"{around.path}.")
        if registered or not _is_users(facts, around.kind):
            return
        built = constructed(facts, module, within=around.kind)
        here = facts.place(event.site)
        made_here = built is None or f"{module.kind}(" in here.code
        place: Place = here if made_here or built is None else built.place
        where = around.path or f"the {around.kind}"
        yield self.finding(
            facts,
            place,
            f"a Dropout that {where} has not registered stays on in evaluation",
            [
                f"{where} ({around.kind}) was called with training=False on {facts.place(outer.site).where}; the "
                f"{module.kind}({module.config}) that it called on {facts.place(event.site).where} had training=True.",
                *_differences(facts, outer),
            ],
            why="eval() goes through registered submodules; one made in forward, or kept in a plain list, is none.",
            fix="Make it in __init__ as an attribute of the module (or in an nn.ModuleList), or use "
            "F.dropout(x, p, training=self.training).",
            evidence=[
                facts.evidence(event, "the Dropout ran with training=True"),
                facts.evidence(outer, f"inside a call of {where} with training=False"),
            ],
            subjects=[where],
        )


def _on(facts: Facts, event: Operation) -> str:
    """How much is dropped, as text, where something is; empty where nothing is or that is not known."""
    argument, position = FUNCTIONS[plain(event.function)]
    given = next((one for one in event.inputs if one.keyword == argument), None)
    unnamed = [one for one in event.inputs if not one.keyword]
    if given is None and len(unnamed) > position:
        given = unnamed[position]
    if plain(event.function) == ATTENTION:
        return _probability(facts, event, given, "0.0")
    training = next((one for one in event.inputs if one.keyword == "training"), None)
    if training is None and len(unnamed) > position + 1 and "multi_head" not in event.function:
        training = unnamed[position + 1]
    if training is not None and training.constant is not True:
        return ""
    return _probability(facts, event, given, "0.0" if "multi_head" in event.function else "0.5")


def _probability(facts: Facts, event: Operation, given: Operand | None, default: str) -> str:
    if given is None:
        return "" if default == "0.0" else default
    if given.constant is not msgspec.UNSET:
        return str(given.code or given.constant) if given.constant else ""
    if not given.code or "training" in given.code:
        return ""
    return given.code if _surely_positive(facts, event, given.code) else ""


def _surely_positive(facts: Facts, event: Operation, code: str) -> bool:
    """Whether a probability whose value was not recorded is above zero: two equal calls gave two results."""
    outer = enclosing(facts, event)
    return outer is not None and bool(_differences(facts, outer)) and "if" not in code.split()


def _differences(facts: Facts, outer: ModuleCalled) -> list[str]:
    """A sentence about two calls in evaluation mode that had the same input and gave different values."""
    tops = [one.call for one in outermost_calls(facts)]
    top = next((call for call in tops if call.seq >= outer.seq), outer)
    for other in tops:
        same = other.module == top.module and [one.tensor for one in other.inputs] == [one.tensor for one in top.inputs]
        if not same or other.seq <= top.seq or other.training or _changed(facts, top.seq, other.seq):
            continue
        first, second = _value_after(facts, top), _value_after(facts, other)
        if first is not None and second is not None and first[1] == second[1] and first[0] != second[0]:
            return [
                f"Two calls with the same input and the same weights, on {facts.place(top.site).where}, gave "
                f"{first[0]:.5g} and {second[0]:.5g} ({first[1]})."
            ]
    return []


def _changed(facts: Facts, after: int, before: int) -> bool:
    return any(True for kind in (OptimizerStepped, DataChanged) for _ in facts.between(kind, after, before))


def _value_after(facts: Facts, call: ModuleCalled) -> tuple[float, str] | None:
    """A number that was computed from a call's result: the first value of it that was kept."""
    if call.value is not None and call.value.items:
        return _float(call.value.items[0], "the first element of the output")
    queue = [shape.tensor for shape in call.outputs[:1]]
    for current in queue:
        if len(queue) > 40:
            break
        for user in facts.users.get(current, ()) if current is not None else ():
            if not isinstance(user, Operation) or len(user.inputs) > 4:
                continue
            if user.value is not None and user.value.items and not user.in_place:
                return _float(user.value.items[0], f"`{facts.place(user.site).code}`")
            queue.extend(user.outputs)
    return None


def _float(item: object, text: str) -> tuple[float, str] | None:
    return (float(item), text) if isinstance(item, (int, float)) else None


def _is_users(facts: Facts, kind: str) -> bool:
    return class_in_source(facts, kind) is not None


def _edits(facts: Facts, event: Operation) -> list[Edit]:
    """`training=self.training`, or the probability only in training, where the call stands in a method."""
    site = facts.site(event.site)
    source = facts.source_of(event.site)
    call = source.expression(site) if site is not None else None
    function = source.function_at(site.line) if site is not None else None
    if not isinstance(call, ast.Call) or isinstance(function, (ast.Lambda, type(None))):
        return []
    if not function.args.args or function.args.args[0].arg != "self":
        return []
    argument, _ = FUNCTIONS[plain(event.function)]
    if plain(event.function) == ATTENTION:
        given = next((one.value for one in call.keywords if one.arg == argument), None)
        if given is None or given.end_lineno is None or given.end_col_offset is None:
            return []
        text = f"{source.segment(given)} if self.training else 0.0"
        return [Edit(source.path, given.lineno, given.col_offset, given.end_lineno, given.end_col_offset, text)]
    given = next((one.value for one in call.keywords if one.arg == "training"), None)
    if given is not None:
        return [
            Edit(
                source.path,
                given.lineno,
                given.col_offset,
                given.end_lineno or given.lineno,
                given.end_col_offset or given.col_offset,
                "self.training",
            )
        ]
    if call.end_lineno is None or call.end_col_offset is None or len(call.args) > 2:
        return []
    end = call.end_lineno, call.end_col_offset - 1
    return [Edit(source.path, *end, *end, ", training=self.training")]
