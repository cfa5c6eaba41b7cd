"""WG902: a constructor of another name was called on an object, and its result dropped."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygrad.ledger.events import Module, Operation
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding
from whygrad.rules.rule import Rule
from whygrad.rules.source import Source
from whygrad.rules.syntax import assignments, callee, class_of, dotted, ran

NAMES = ("from_pretrained", "load_from_checkpoint", "from_config", "from_checkpoint", "from_file", "from_state_dict")


class ConstructionDropped(Rule):
    """Pretrained weights are loaded without an error, and not used.

    `from_pretrained` is a class method: it builds and *returns* a new object. Called on an object that exists, it
    leaves that object as it is, and its result is thrown away: the layer keeps its random start values.

    **How to put it right.** Assign what it returns: `self.embedding = nn.Embedding.from_pretrained(vectors)`.
    """

    code = "WG902"
    slug = "construction-dropped"
    search = (
        "nn.Embedding from_pretrained not working",
        "pretrained embeddings not used",
        "load_from_checkpoint random weights",
        "from_pretrained result ignored",
    )
    wrong = (
        """
        import torch
        from torch import nn

        class Tagger(nn.Module):
            def __init__(self, vectors):
                super().__init__()
                self.embedding = nn.Embedding(*vectors.shape)
                self.embedding.from_pretrained(vectors)  # <- here

            def forward(self, ids):
                return self.embedding(ids).mean()

        Tagger(torch.ones(5, 2))(torch.tensor([1, 2])).backward()
        """,
    )
    right = (
        """
        import torch
        from torch import nn

        class Tagger(nn.Module):
            def __init__(self, vectors):
                super().__init__()
                self.embedding = nn.Embedding.from_pretrained(vectors, freeze=False)

            def forward(self, ids):
                return self.embedding(ids).mean()

        Tagger(torch.ones(5, 2))(torch.tensor([1, 2])).backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        for path in facts.ledger.sources():
            source = facts.source(path)
            for node in ast.walk(source.tree):
                if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
                    continue
                call = node.value
                if callee(call) not in NAMES or not isinstance(call.func, ast.Attribute):
                    continue
                owner = dotted(call.func.value)
                if owner and not _returns_nothing(source, callee(call)) and ran(facts, source, node):
                    yield self._finding(facts, source, node, owner, callee(call))

    def _finding(self, facts: Facts, source: Source, node: ast.Expr, owner: str, name: str) -> Finding:
        module = _object(facts, source, node, owner)
        spoken = module.path if module is not None else owner
        called = next(
            (event for event in facts.events if module is not None and getattr(event, "module", None) == module.id),
            None,
        )
        met = called or module or next(iter(facts.of(Operation)), facts.events[0])
        weights = [tensor for _, tensor in module.parameters] if module is not None else []
        made = _kind(source, owner) or (module.kind if module is not None else owner.rpartition(".")[2])
        first = f"{facts.describe(weights[0])} keeps the values that it was made with." if weights else ""
        return self.finding(
            facts,
            facts.line(source.path, node.lineno),
            f"what {name}() returns is thrown away",
            [
                f"`{source.segment(node)}` builds a new object and drops it; {spoken} is what it was before.",
                *([first] if first else []),
            ],
            why=f"{name}() is a class method: it returns a new object and changes none.",
            fix=f"Assign the result: {owner} = {made}.{name}(...).",
            evidence=[facts.evidence(met, f"{spoken} went on with the values that it had")],
            subjects=[spoken, *(facts.describe(weight) for weight in weights)],
        )


def _returns_nothing(source: Source, name: str) -> bool:
    """Whether the program defines a method of this name that is no class method."""
    return any(
        isinstance(node, ast.FunctionDef) and node.name == name and not node.decorator_list
        for node in ast.walk(source.tree)
    )


def _object(facts: Facts, source: Source, node: ast.AST, owner: str) -> Module | None:
    """The module that the text's `self.embedding` or `model.embedding` is."""
    tail = owner.removeprefix("self.")
    inside = class_of(source, node) if owner.startswith("self.") else None
    for module in facts.modules.values():
        if module.path == owner or (inside is not None and module.path.endswith(f".{tail}")):
            return module
    return None


def _kind(source: Source, owner: str) -> str:
    """How the program spells the class of an object: `nn.Embedding` where it wrote `x = nn.Embedding(...)`."""
    for _, target, value in assignments(source.tree):
        if dotted(target) == owner and isinstance(value, ast.Call):
            return dotted(value.func)
    return ""
