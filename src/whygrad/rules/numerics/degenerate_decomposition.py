"""WG603: backward through a decomposition with equal singular values or eigenvalues."""

from __future__ import annotations

from collections.abc import Iterator

from whygrad.rules.facts import Facts
from whygrad.rules.finding import Finding
from whygrad.rules.nonfinite import DECOMPOSITIONS, culprit, spectrum, symptom
from whygrad.rules.rule import Rule
from whygrad.rules.slopes import told
from whygrad.rules.terms import tensors_of


class DegenerateDecomposition(Rule):
    """Backward through SVD or eigh is NaN: two singular values or eigenvalues are equal.

    The backward of singular vectors and eigenvectors contains `1 / (s_i**2 - s_j**2)`. For a matrix of low rank (two
    zeros), a multiple of the identity, or repeated features, two values are equal and the term is 0/0. The forward is
    exact all the same. The values alone (`svdvals`, `eigvalsh`) have a finite gradient.

    **How to see it.** It works with random data, and fails with constant or repeated features.

    **How to put it right.** Break the tie before the decomposition (`a + 1e-4 * torch.randn_like(a)`), write the loss
    with singular values only, or with the product that does not need the vectors.
    """

    code = "WG603"
    slug = "degenerate-decomposition"
    search = (
        "SVD backward NaN", "LinalgSvdBackward0 returned nan values", "eigh gradient nan",
        "repeated eigenvalues gradient",
        "low rank covariance backward",
    )  # fmt: skip
    wrong = (
        """
        import torch
        a = torch.diag(torch.tensor([2.0, 0.0, 0.0])).requires_grad_()
        u, s, vh = torch.linalg.svd(a)  # <- here
        (u @ torch.diag(s) @ vh).sum().backward()
        """,
    )
    right = (
        """
        import torch
        a = torch.diag(torch.tensor([2.0, 1.0, 0.5])).requires_grad_()
        u, s, vh = torch.linalg.svd(a)
        (u @ torch.diag(s) @ vh).sum().backward()
        """,
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        found = symptom(facts)
        guilty = culprit(facts, found) if found is not None else None
        if found is None or guilty is None or not guilty.node.name.startswith(DECOMPOSITIONS):
            return
        operation = guilty.operation
        given = [facts.value(one, operation.seq) for one in tensors_of(operation.inputs)] if operation else []
        happened = told(facts, found, guilty)
        if values := spectrum(guilty.node, operation, given, facts):
            happened.append(f"The values are {', '.join(f'{one:.4g}' for one in values[:8])}.")
        yield self.finding(
            facts,
            facts.place(guilty.node.site),
            "the gradient is not finite: two singular values (or eigenvalues) are equal",
            happened,
            why="The backward of the vectors divides by the difference of each pair of values.",
            fix="Add a small random jitter before the decomposition, or write the loss without the vectors.",
            evidence=[
                facts.evidence(guilty.node, f"{guilty.node.name} divides by differences of these values"),
                facts.evidence(found.write or found.entry.began, "the gradient is not finite"),
            ],
            subjects=[facts.describe(found.write.tensor)] if found.write is not None else [],
        )
