"""WG405: the norm in a gradient penalty is not one number a sample."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import msgspec

from whygrad.ledger.events import Operation, TensorId
from whygrad.rules.facts import Facts
from whygrad.rules.finding import Edit, Finding
from whygrad.rules.flow import REARRANGING, constant
from whygrad.rules.losscalls import plain, shape_of
from whygrad.rules.rule import Rule

NORMS = frozenset({"norm", "vector_norm", "matrix_norm"})
SQUARES = frozenset({"pow", "square", "mul"})


class Norm(msgspec.Struct, frozen=True, eq=False):
    """A norm of a gradient: the gradient, its shape, the operation (or the square root), and the norm's shape."""

    gradient: TensorId
    given: tuple[int, ...]
    call: Operation
    result: tuple[int, ...]


class GradientNormPerElement(Rule):
    """The gradient penalty is wrong: the norm is taken per pixel (or over the whole batch), not per sample.

    The penalty of WGAN-GP is `(||grad||_2 - 1)^2` with the norm over *all* elements of one sample's gradient. For
    vectors, `grad.norm(2, dim=1)` is that. For images of shape (N, C, H, W) it is a norm over the channels, one for
    each pixel: every pixel's gradient is pulled to 1. `grad.norm(2)` without `dim` is one number for the batch.

    **How to see it.** The norm has more than one number a sample, or fewer.

    **How to put it right.** `grad.flatten(1).norm(2, dim=1)`.
    """

    code = "WG405"
    slug = "gradient-norm-per-element"
    intended = "the penalty is to hold for each pixel, or for the batch as a whole"
    search = (
        "gradient penalty too large",
        "WGAN-GP gradient norm dim=1 images",
        "gradients.view(batch_size, -1).norm",
        "penalty not zero for 1-Lipschitz critic",
    )
    wrong = (
        """
        import torch
        torch.manual_seed(0)
        critic = torch.nn.Conv2d(3, 1, 4)
        images = torch.randn(8, 3, 4, 4, requires_grad=True)
        (grad,) = torch.autograd.grad(critic(images).sum(), images, create_graph=True)
        penalty = ((grad.norm(2, dim=1) - 1) ** 2).mean()  # <- here
        penalty.backward()
        """,
        """
        import torch
        torch.manual_seed(0)
        critic = torch.nn.Linear(6, 1)
        points = torch.randn(8, 6, requires_grad=True)
        (grad,) = torch.autograd.grad(critic(points).sum(), points, create_graph=True)
        penalty = (grad.norm() - 1) ** 2  # <- here
        penalty.backward()
        """,
    )
    right = (
        """
        import torch
        torch.manual_seed(0)
        critic = torch.nn.Conv2d(3, 1, 4)
        images = torch.randn(8, 3, 4, 4, requires_grad=True)
        (grad,) = torch.autograd.grad(critic(images).sum(), images, create_graph=True)
        penalty = ((grad.view(8, -1).norm(2, dim=1) - 1) ** 2).mean()
        penalty = penalty + ((grad.pow(2).sum(dim=(1, 2, 3)).sqrt() - 1) ** 2).mean()
        penalty.backward()
        """,
        """
        import torch
        torch.manual_seed(0)
        critic = torch.nn.Linear(6, 1)
        points = torch.randn(8, 6, requires_grad=True)
        (grad,) = torch.autograd.grad(critic(points).sum(), points, create_graph=True)
        ((grad.norm(2, dim=1) - 1) ** 2).mean().backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        for event in facts.of(Operation):
            if plain(event.function) != "grad" or "autograd" not in event.function or not event.outputs:
                continue
            for gradient in event.outputs:
                given = shape_of(facts, gradient)
                if given is None or len(given) < 2 or given[0] < 2:
                    continue
                if facts.tensors[gradient].origin == "parameter" or _of_parameter(facts, event):
                    continue
                for norm in _norms(facts, gradient, given):
                    taken = _taken_from(facts, norm)
                    if taken is not None and not _per_sample(norm):
                        yield self._found(facts, norm, taken)

    def _found(self, facts: Facts, norm: Norm, taken: Operation) -> Finding:
        name = facts.describe(norm.gradient)
        count = 1
        for size in norm.result:
            count *= size
        each = norm.given[0]
        kind = f"{count // each} norms for each sample" if count > each else "one norm for the whole batch"
        if 1 < count < each or (count > each and count % each):
            kind = f"{count} norms for {each} samples"
        return self.finding(
            facts,
            norm.call.site if norm.call.site is not None else facts.place(taken.site),
            f"the gradient penalty takes {kind}",
            [
                f"{name} has shape {norm.given}: {each} samples. Its norm here has shape {norm.result}: {kind}, and "
                f"each is compared with the target on {facts.place(taken.site).where}."
            ],
            why="The condition is on the norm of a whole sample's gradient, over all dimensions but the first.",
            fix="Flatten each sample first: grad.flatten(1).norm(2, dim=1).",
            evidence=[
                facts.evidence(norm.call, f"a norm of shape {norm.result} of a gradient of shape {norm.given}"),
                facts.evidence(taken, "compared with the target norm"),
            ],
            subjects=[name],
            edits=_edits(facts, norm),
        )


def _of_parameter(facts: Facts, event: Operation) -> bool:
    """Whether the gradient is one of parameters (of a norm of weights, a Hessian), not of samples."""
    wanted = [operand for operand in event.inputs if not operand.keyword][1:2]
    wanted += [operand for operand in event.inputs if operand.keyword == "inputs"]
    tensors = [one.tensor for one in wanted] + [item.tensor for one in wanted for item in one.items or ()]
    return any(tensor in facts.owners or tensor in facts.held for tensor in tensors if tensor is not None)


def _norms(facts: Facts, gradient: TensorId, given: tuple[int, ...]) -> Iterator[Norm]:
    """Norms of the gradient itself, also of a rearranged one: as an operation, or as the root of a sum of squares."""
    queue: list[tuple[TensorId, bool, bool, int]] = [(gradient, False, False, given[0])]
    for current, squared, summed, batch in queue:
        if len(queue) > 50:
            return
        for user in facts.users.get(current, ()):
            if not isinstance(user, Operation) or not user.outputs:
                continue
            name, output = plain(user.function), user.outputs[0]
            shape = shape_of(facts, output)
            if shape is None:
                continue
            if name in NORMS and not squared:
                yield Norm(gradient, given, user, shape)
            elif name in REARRANGING and not summed:
                keeps = bool(shape) and (shape[0] == batch or name in ("getitem", "squeeze"))
                if keeps or not shape:
                    queue.append((output, squared, summed, batch))
            elif name in SQUARES and not squared and _is_square(user, current):
                queue.append((output, True, summed, batch))
            elif (name == "sum" and squared and not summed) or (
                name in ("add", "clamp") and summed and len(user.inputs) == 2
            ):
                queue.append((output, True, True, batch))
            elif name == "sqrt" and summed:
                yield Norm(gradient, given, user, shape)


def _is_square(user: Operation, current: TensorId) -> bool:
    if plain(user.function) == "square":
        return True
    if plain(user.function) == "pow":
        return len(user.inputs) > 1 and constant(user.inputs[1]) in (2, 2.0)
    return [one.tensor for one in user.inputs] == [current, current]


def _taken_from(facts: Facts, norm: Norm) -> Operation | None:
    """The comparison of the norm with a target: `norm - 1`, `relu(norm - 1)`, `1 - norm`."""
    for output in norm.call.outputs:
        for user in facts.users.get(output, ()):
            if isinstance(user, Operation) and plain(user.function) in ("sub", "rsub"):
                others = [one for one in user.inputs if one.tensor != output]
                if len(others) == 1 and isinstance(constant(others[0]), (int, float)):
                    return user
    return None


def _per_sample(norm: Norm) -> bool:
    count = 1
    for size in norm.result:
        count *= size
    return bool(norm.result) and count == norm.given[0] and norm.result[0] == norm.given[0]


def _edits(facts: Facts, norm: Norm) -> list[Edit]:
    """`.flatten(1)` before `.norm(2, dim=1)`."""
    site = facts.site(norm.call.site)
    source = facts.source_of(norm.call.site)
    node = source.expression(site) if site is not None else None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "norm":
        return []
    base = node.func.value
    if norm.call.inputs[0].tensor != norm.gradient or base.end_lineno is None or base.end_col_offset is None:
        return []
    dims = [keyword for keyword in node.keywords if keyword.arg == "dim"]
    at = base.end_lineno, base.end_col_offset
    if len(dims) == 1 and source.segment(dims[0].value) == "1":
        return [Edit(source.path, *at, *at, ".flatten(1)")] if len(norm.given) > 2 else []
    if not dims and not node.keywords and len(node.args) <= 1 and node.end_lineno and node.end_col_offset:
        end = node.end_lineno, node.end_col_offset - 1
        text = ", dim=1" if node.args else "dim=1"
        return [Edit(source.path, *at, *at, ".flatten(1)"), Edit(source.path, *end, *end, text)]
    return []
