"""WG701: gradcheck is given float32."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygrad.ledger.events import BackwardBegan, Raised, TensorId, Warned
from whygrad.rules.constructors import calls_of, made_at
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding, Severity
from whygrad.rules.rule import Rule

SINGLE = ("float32", "float16", "bfloat16")


class GradcheckInSinglePrecision(Rule):
    """gradcheck reports a Jacobian mismatch although the gradient is right: the inputs are float32.

    `torch.autograd.gradcheck` compares the gradient with differences over a step of 1e-6. In float32 the rounding error
    of such a difference is larger than its tolerance, so correct gradients fail: "Jacobian mismatch for output 0 with
    respect to input 0". PyTorch warns that an input "is not a double precision floating point".

    **How to put it right.** Check in float64: `layer.double()`, inputs with `dtype=torch.float64`.
    """

    code = "WG701"
    slug = "gradcheck-in-single-precision"
    search = (
        "GradcheckError Jacobian mismatch for output 0 with respect to input 0", "gradcheck fails float32",
        "is not a double precision floating point or complex",
    )  # fmt: skip
    explains = ("WG218",)
    wrong = (
        """
        import torch
        torch.manual_seed(0)
        x = torch.rand(4, 3, requires_grad=True)  # <- here
        torch.autograd.gradcheck(lambda x: (x.exp() * 3).sum(1), (x,))
        """,
    )
    right = (
        """
        import torch
        torch.manual_seed(0)
        x = torch.rand(4, 3, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(lambda x: (x.exp() * 3).sum(1), (x,))
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        seen = set()
        told: list[Raised | Warned] = [*facts.of(Raised), *facts.of(Warned)]
        for event in told:
            failed = isinstance(event, Raised) and ("Jacobian" in event.text or "GradcheckError" in event.kind)
            if not failed and "is not a double precision floating point" not in event.text:
                continue
            single = list(_single(facts, event)) or list(_named(facts))
            line = facts.place(event.site).line or facts.place(facts.tensors[single[0]].site).line if single else 0
            if single and line not in seen:
                seen.add(line)
                yield self._found(facts, event, single, failed)

    def _found(self, facts: Facts, event: Raised | Warned, single: list[TensorId], failed: bool) -> Finding:
        names = ", ".join(facts.describe(tensor) for tensor in single)
        dtype = facts.tensors[single[0]].dtype
        where = facts.place(event.site)
        if not where.line:
            where = next((place for place, _ in calls_of(facts, "gradcheck")), where)
        story = "failed with a Jacobian mismatch" if failed else "was warned of by PyTorch"
        return self.finding(
            facts,
            made_at(facts, single[0]) or where,
            f"gradcheck compares in {dtype}, where it cannot tell right from wrong",
            [
                f"gradcheck on {where.where} {story}; its input {names} is {dtype}.",
                f"Its differences over a step of 1e-6 have a rounding error of about {_error(dtype)} in {dtype}.",
            ],
            why="A difference quotient over so small a step needs the digits of float64.",
            fix="Run gradcheck in float64: module.double(), inputs with dtype=torch.float64.",
            evidence=[facts.evidence(event, "gradcheck found a mismatch" if failed else "PyTorch warned of the dtype")],
            subjects=[names],
            severity=None if failed else Severity.NOTE if "eps=" in where.code else Severity.WARNING,
        )


def _named(facts: Facts) -> Iterator[TensorId]:
    """The inputs in single precision that the text of a gradcheck names."""
    for place, call in calls_of(facts, "gradcheck"):
        for node in (one for argument in call.args[1:] for one in ast.walk(argument)):
            if isinstance(node, ast.Name):
                for tensor in facts.ledger.find(node.id, place.line, place.path)[:1]:
                    if facts.tensors[tensor].dtype in SINGLE and facts.flow.requires_grad(tensor):
                        yield tensor


def _error(dtype: str) -> str:
    return {"float32": "1e-7 / 1e-6 = 0.1"}.get(dtype, "1e-3 / 1e-6 = 1000")


def _single(facts: Facts, raised: Raised | Warned) -> Iterator[TensorId]:
    """The inputs, in single precision or less, of the gradients that gradcheck asked for."""
    seen = set()
    here = facts.place(raised.site)
    for began in facts.of(BackwardBegan):
        place = facts.place(began.site)
        if (place.path, place.line) != (here.path, here.line) or began.call != "autograd.grad":
            continue
        for tensor in began.inputs or ():
            known = facts.tensors.get(tensor)
            if known is not None and known.dtype in SINGLE and tensor not in seen:
                seen.add(tensor)
                yield tensor
