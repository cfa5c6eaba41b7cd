"""WG303: train() or eval() that do not reach the layers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygrad.ledger.events import ModeChanged, Raised
from whygrad.ledger.events import Source as SourceFile
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding, Severity
from whygrad.rules.modulecalls import classes_in_source, mode_matters, outermost_calls
from whygrad.rules.rule import Rule
from whygrad.rules.syntax import callee, dotted


class ModeNeverSwitched(Rule):
    """model.eval() has no effect: train() is overridden, or only one flag was set.

    A method called `train` in the user's own class (often one that
    runs the training) replaces `nn.Module.train`, which `eval()` calls too: then `eval()` raises a TypeError, or sets
    nothing. And `model.training = False` sets the flag of one module and of none below it.

    **How to put it right.** Give a training method another name, or call
    `super().train(mode)` in an override and return self; use `train()` and `eval()` instead of the flag.
    """

    code = "WG303"
    slug = "mode-never-switched"
    search = (
        "train() missing 1 required positional argument",
        "train() takes 1 positional argument but 2 were given",
        "override train method nn.Module",
        "model.training = False",
    )
    wrong = (
        """
        import torch
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc, self.drop = nn.Linear(4, 4), nn.Dropout(0.5)

            def forward(self, x):
                return self.drop(self.fc(x))

            def train(self, data):  # <- here
                for x in data:
                    self(x).sum().backward()

        net = Net()
        net.train(torch.ones(2, 3, 4))
        net.eval()
        """,
    )
    right = (
        """
        import torch
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)

            def forward(self, x):
                return self.norm(self.fc(x))

            def train(self, mode=True):
                super().train(mode)
                self.norm.eval()
                return self

        net = Net()
        net.train()
        net(torch.ones(2, 4)).sum().backward()
        net.eval()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        yield from self._overridden(facts)
        yield from self._one_flag(facts)

    def _overridden(self, facts: Facts) -> Iterator[Finding]:
        kinds = {module.kind: module for module in facts.modules.values()}
        for name, (definition, path) in classes_in_source(facts).items():
            method = next(
                (one for one in definition.body if isinstance(one, ast.FunctionDef) and one.name == "train"), None
            )
            if method is None or name not in kinds or _delegates(method):
                continue
            raised = next((one for one in facts.of(Raised) if _of_mode_call(facts, one)), None)
            asked = next((one for one in facts.of(ModeChanged) if one.module == kinds[name].id), None)
            event = raised or asked
            matters = any(mode_matters(facts, module) for module in facts.modules.values())
            if event is None or (raised is None and not matters):
                continue
            text = f"It raised: {raised.text}." if raised is not None else "The mode of the layers did not change."
            yield self.finding(
                facts,
                facts.line(path, method.lineno),
                f"{name}.train replaces nn.Module.train, which sets the mode",
                [f"{name} defines train() of its own; eval() calls train(False). {text}"],
                why="nn.Module.eval() is self.train(False); a method of the same name takes its place.",
                fix="Give the method another name (fit), or call super().train(mode) in it and return self.",
                evidence=[facts.evidence(event, text)],
                subjects=[kinds[name].path or name],
            )

    def _one_flag(self, facts: Facts) -> Iterator[Finding]:
        for file in facts.of(SourceFile):
            source = facts.source(file.path)
            for node in ast.walk(source.tree):
                if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Attribute):
                    continue
                target = node.targets[0]
                owner = dotted(target.value)
                if target.attr != "training" or not isinstance(node.value, ast.Constant) or owner in ("", "self"):
                    continue
                wanted = node.value.value
                for outer in outermost_calls(facts):
                    module = facts.modules.get(outer.call.module)
                    if module is None or module.path != owner or outer.call.training is not wanted:
                        continue
                    other = next(
                        (
                            one
                            for one in outer.inner
                            if one.training is not wanted and mode_matters(facts, facts.modules.get(one.module))
                        ),
                        None,
                    )
                    if other is not None:
                        inner = facts.modules[other.module]
                        method = "train" if wanted else "eval"
                        yield self.finding(
                            facts,
                            facts.line(file.path, node.lineno),
                            f"{owner}.training = {wanted} reaches {owner} alone, not the layers in it",
                            [
                                f"In the call on {facts.place(outer.call.site).where} {owner} had training={wanted}, "
                                f"but {inner.path} ({inner.kind}) had training={other.training}."
                            ],
                            why="The flag belongs to each module; train() and eval() set it in all of them.",
                            fix=f"Call {owner}.{method}().",
                            evidence=[facts.evidence(other, f"{inner.path} ran with training={other.training}")],
                            subjects=[owner],
                            severity=Severity.ERROR,
                        )
                        break


def _of_mode_call(facts: Facts, raised: Raised) -> bool:
    """Whether `eval()` or `train()` raised: by the arguments, or since the method was given a mode for its data."""
    site = facts.site(raised.site)
    inside = site is not None and site.function.endswith(".train") and "'bool'" in raised.text
    code = site.code if site is not None else ""
    called = code.endswith((".eval()", ".train()"))
    return raised.kind == "TypeError" and ("train()" in raised.text or inside or called)


def _delegates(method: ast.FunctionDef) -> bool:
    """Whether an override hands on to nn.Module's own train, or sets the modes itself."""
    return any(
        isinstance(node, ast.Call)
        and callee(node) in ("train", "eval")
        and not (isinstance(node.func, ast.Attribute) and dotted(node.func.value) == "self")
        for node in ast.walk(method)
    )
