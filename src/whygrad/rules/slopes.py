"""The sentences about a slope that is infinite or undefined."""

from __future__ import annotations

from whygrad.rules.facts import Facts
from whygrad.rules.nonfinite import Culprit, Symptom
from whygrad.rules.numbers import say


def told(facts: Facts, found: Symptom, guilty: Culprit) -> list[str]:
    """The finite root, the gradient that is not, and the node that makes it so."""
    place = facts.place(guilty.node.site)
    where = facts.place(found.entry.began.site).where
    sure = "" if guilty.proven else " (its values were not recorded; nothing else on the way can be infinite)"
    sentences = []
    if found.write is not None:
        value = getattr(found.write, "after", None) or getattr(found.write, "value", None)
        count = f"{value.nan} NaN and {value.inf} infinite of {value.count}" if value is not None else "not finite"
        root = say(found.entry.began.root_value)
        sentences.append(
            f"The backward on {where} started from {root}, and gave {facts.describe(found.write.tensor)} a "
            f"gradient with {count} elements."
        )
    sentences.append(f"On the way, `{place.code}` ({place.where}): {guilty.reason}{sure}.")
    return sentences
