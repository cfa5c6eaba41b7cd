"""WG505: layers in a plain list, dict or tuple are not part of the module."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import msgspec

from whygrad.ledger.events import GradWritten, ModuleCalled, Raised, TensorId
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Edit, Finding, Severity
from whygrad.rules.memo import once
from whygrad.rules.numbers import say
from whygrad.rules.rule import Rule
from whygrad.rules.source import Source
from whygrad.rules.syntax import assignments, callee, calls, dotted, makes_module, replace
from whygrad.rules.untrained import untrained


class Hidden(msgspec.Struct, frozen=True):
    """A parameter of a layer that a plain container hides: the class, the attribute, the line that fills it."""

    tensor: TensorId
    write: GradWritten
    call: ModuleCalled | None
    source: Source
    owner: str
    attribute: str
    node: ast.expr


class LayersInContainer(Rule):
    """Layers in a Python list or dict keep their initial weights.

    `nn.Module` registers what is assigned as a module or a parameter. A plain list, tuple or dict of layers is just
    an attribute: the layers work in `forward` and get gradients, but `model.parameters()`, `model.to(device)`,
    `model.eval()` and `state_dict()` do not know them, so no optimizer moves them and `zero_grad()` does not clear
    them.

    **How to put it right.** Use `nn.ModuleList([...])`, `nn.ModuleDict({...})` or `nn.ParameterList([...])`.
    """

    code = "WG505"
    slug = "layers-in-container"
    search = (
        "model.parameters() is empty",
        "optimizer got an empty parameter list",
        "hidden layers do not train",
        "nn.ModuleList python list of layers",
    )
    wrong = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.hidden = [nn.Linear(4, 4) for _ in range(2)]  # <- here
                self.out = nn.Linear(4, 1)

            def forward(self, x):
                for layer in self.hidden:
                    x = torch.tanh(layer(x))
                return self.out(x)

        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for _ in range(3):
            loss = (model(x) - y).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    )
    right = (
        """
        import torch
        from torch import nn
        torch.manual_seed(0)

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                layers = [nn.Linear(4, 4) for _ in range(2)]
                self.hidden = nn.ModuleList(layers)
                self.order = [self.hidden[1], self.hidden[0]]
                self.out = nn.Linear(4, 1)

            def forward(self, x):
                for layer in self.order:
                    x = torch.tanh(layer(x))
                return self.out(x)

        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        for _ in range(3):
            loss = (model(x) - y).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        yield from self._nothing_registered(facts)
        groups: dict[tuple[str, int], list[Hidden]] = {}
        for one in hidden_in(facts).values():
            groups.setdefault((one.source.path, one.node.lineno), []).append(one)
        stepped = {one.tensor for one in untrained(facts)}
        for members in groups.values():
            first = members[0]
            names = [facts.describe(one.tensor) for one in members]
            kind = facts.modules[first.call.module].kind if first.call is not None else "Parameter"
            used = facts.place(first.call.site if first.call is not None else first.write.site).where
            stays = first.tensor in stepped
            yield self.finding(
                facts,
                facts.line(first.source.path, first.node.lineno),
                f"the layers in {first.owner}.{first.attribute} are not registered",
                [
                    f"{used} reached a {kind} of self.{first.attribute}, and gradients were written for it "
                    f"({say(first.write.after)}).",
                    f"{len(members)} such tensors are in no module's parameters"
                    + (", no optimizer holds them, and they did not move." if stays else "."),
                ],
                why="A plain list, tuple or dict of layers is no part of the module: parameters() does not find them.",
                fix="Wrap the container in nn.ModuleList, nn.ModuleDict or nn.ParameterList.",
                evidence=[
                    *(
                        [facts.evidence(first.call, f"a {kind} that the module does not own was called")]
                        if first.call is not None
                        else []
                    ),
                    facts.evidence(first.write, f"its gradient was written: {say(first.write.after)}"),
                ],
                subjects=names,
                severity=Severity.ERROR if stays else Severity.WARNING,
                edits=_edits(first.source, first.node),
            )

    def _nothing_registered(self, facts: Facts) -> Iterator[Finding]:
        """An optimizer refused an empty list of parameters, and the program keeps layers in plain containers."""
        raised = next((one for one in facts.of(Raised) if "empty parameter list" in one.text), None)
        if raised is None:
            return
        kinds = {module.kind for module in facts.modules.values() if not module.parameters}
        for source, owner, attribute, node in _containers(facts):
            if owner in kinds or any(True for _ in calls(source.tree, owner)):
                yield self.finding(
                    facts,
                    facts.line(source.path, node.lineno),
                    f"the layers in {owner}.{attribute} are not registered",
                    [f"{facts.place(raised.site).where} raised: {raised.text}. The parameters of {owner} are empty."],
                    why="A plain list, tuple or dict of layers is no part of the module: parameters() is empty.",
                    fix="Wrap the container in nn.ModuleList, nn.ModuleDict or nn.ParameterList.",
                    evidence=[facts.evidence(raised, raised.text)],
                    subjects=[owner],
                    severity=Severity.ERROR,
                    edits=_edits(source, node),
                )
                return


@once
def hidden_in(facts: Facts) -> dict[TensorId, Hidden]:
    """Parameters with gradients, held by no optimizer, of layers that a class keeps in plain containers."""
    found: dict[TensorId, Hidden] = {}
    containers = list(_containers(facts))
    if not containers or facts.partial:
        return found
    registered = _registered(facts)
    first_call: dict[int, ModuleCalled] = {}
    for call in facts.of(ModuleCalled):
        first_call.setdefault(call.module, call)
    for each in facts.passes:
        for write in each.written:
            if write.tensor in facts.held or write.tensor in registered or write.tensor in found:
                continue
            known, site = facts.tensors.get(write.tensor), None
            if known is not None and known.origin == "parameter" and write.tensor not in facts.owners:
                site = facts.site(known.site)
            for source, name, attribute, node in containers if site is not None else ():
                if site is not None and source.path == site.path and _covers(node, site.line):
                    found[write.tensor] = Hidden(write.tensor, write, None, source, name, attribute, node)
            for owner in facts.owners.get(write.tensor, ()):
                made = first_call.get(owner.module)
                told = _container_of(facts, containers, made) if made is not None else None
                if told is not None:
                    found[write.tensor] = Hidden(write.tensor, write, made, *told)
    return found


def _covers(node: ast.expr, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


Container = tuple[Source, str, str, ast.expr]


def _containers(facts: Facts) -> Iterator[Container]:
    """Attributes that classes fill with a plain container of layers: (file, class, attribute, the container)."""
    for path in facts.ledger.sources():
        source = facts.source(path)
        for owner in ast.walk(source.tree):
            if not isinstance(owner, ast.ClassDef):
                continue
            plain: dict[str, ast.expr] = {}
            for _, target, value in assignments(owner):
                name = dotted(target)
                if name.startswith("self.") and isinstance(value, (ast.List, ast.Tuple, ast.Dict)) | _is_plain(value):
                    plain[name] = value
                    if _holds_layers(owner, value):
                        yield source, owner.name, name[5:], value
                if isinstance(target, ast.Subscript) and dotted(target.value) in plain and makes_module(value):
                    yield source, owner.name, dotted(target.value)[5:], plain[dotted(target.value)]
            for call in calls(owner, "append", "extend", "insert", "setdefault"):
                name = dotted(call.func).rpartition(".")[0]
                if name in plain and any(_holds_layers(owner, given) for given in call.args):
                    yield source, owner.name, name[5:], plain[name]


def _is_plain(value: ast.expr) -> bool:
    return isinstance(value, (ast.ListComp, ast.DictComp)) or callee(value) in ("list", "tuple", "dict")


def _holds_layers(owner: ast.ClassDef, value: ast.expr) -> bool:
    """Whether an expression makes layers or parameters, itself or by a local list that it names."""
    if any(makes_module(call) for call in calls(value)):
        return not any(
            callee(call) in ("ModuleList", "ModuleDict", "ParameterList", "ParameterDict") for call in calls(value)
        )
    if isinstance(value, ast.Name):
        return any(
            dotted(target) == value.id and any(makes_module(call) for call in calls(given))
            for _, target, given in assignments(owner)
        )
    return any(callee(call).islower() and callee(call) not in ("range", "len", "zip") for call in calls(value))


def _container_of(facts: Facts, containers: list[Container], call: ModuleCalled) -> Container | None:
    """The container that a call's layer comes from: of the class in whose method the call stands."""
    site = facts.site(call.site)
    if site is None or "." not in site.function:
        return None
    owner = site.function.rpartition(".")[0].rpartition(".")[2]
    own = [one for one in containers if one[1] == owner and one[0].path == site.path]
    if not own:
        return None
    source = own[0][0]
    text = {one[2]: one for one in own}
    for node in _seen_around(source, site.line):
        for name in ast.walk(node):
            spelled = dotted(name)
            if spelled.startswith("self.") and spelled[5:] in text:
                return text[spelled[5:]]
    return own[0] if len(text) == 1 else None


def _seen_around(source: Source, line: int) -> Iterator[ast.AST]:
    statement = source.statement(line)
    if statement is None:
        return
    yield statement
    loop = source.loop_at(line)
    if isinstance(loop, ast.For):
        yield loop.iter


def _registered(facts: Facts) -> set[TensorId]:
    """Parameters of modules that a program's own module reaches by attribute paths (`net.out`, not `layer`)."""
    paths = {module.path for module in facts.modules.values()}
    return {
        tensor
        for module in facts.modules.values()
        if any(module.path.startswith(f"{path}.") for path in paths if path)
        for _, tensor in module.parameters
    }


def _edits(source: Source, node: ast.expr) -> list[Edit]:
    wrapper = {ast.List: "ModuleList", ast.ListComp: "ModuleList", ast.Dict: "ModuleDict", ast.DictComp: "ModuleDict"}
    name = wrapper.get(type(node))
    if name is None:
        return []
    text = source.segment(node) if ast.unparse(node) not in ("[]", "{}") else ""
    if "Parameter(" in text:
        name = name.replace("Module", "Parameter")
    prefix = (
        "nn" if any(isinstance(each, ast.Name) and each.id == "nn" for each in ast.walk(source.tree)) else "torch.nn"
    )
    return [replace(source, node, f"{prefix}.{name}({text})")]
