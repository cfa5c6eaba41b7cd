"""What the rules found, worst first: the line to blame, what happened in numbers, why, and the fix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.text import Text

from whygrad.report.sheet import BAD, NAME, NOTICE, PLACE, TITLE, Paragraph, Pen, Rows, Section, styled
from whygrad.report.wording import say_plural
from whygrad.rules.diagnose import Diagnosis
from whygrad.rules.finding import Finding, Severity

STYLES = {Severity.ERROR: BAD, Severity.WARNING: NOTICE, Severity.NOTE: NAME}

SHOWN = 8
"""So many findings are told in full; the others by their title."""

EVIDENCE = 3
"""So many events are quoted for a finding."""


def findings(diagnosis: Diagnosis, pen: Pen) -> Section | None:
    """A paragraph or two a finding."""
    if not diagnosis.findings and not diagnosis.failed:
        return None
    blocks: list[Paragraph | Rows] = []
    shown = diagnosis.findings if pen.verbose else diagnosis.findings[:SHOWN]
    for number, one in enumerate(shown):
        if number:
            blocks.append(Paragraph(Text()))
        blocks.extend(_told(one, pen))
    if hidden := diagnosis.findings[len(shown) :]:
        blocks.append(Rows([(Text(one.place.where), Text(f"{one.code} {one.title}")) for one in hidden]))
    blocks.extend(Paragraph(Text(sentence)) for sentence in diagnosis.failed)
    return Section("Findings", _summary(diagnosis), blocks)


def _summary(diagnosis: Diagnosis) -> Text:
    counts = Counter(one.severity for one in diagnosis.findings)
    parts = [styled((say_plural(counts[kind], kind.value), STYLES[kind])) for kind in Severity if counts[kind]]
    if diagnosis.silenced:
        parts.append(Text(f"{diagnosis.silenced} silenced"))
    return Text(", ").join(parts)


def _told(finding: Finding, pen: Pen) -> Iterator[Paragraph | Rows]:
    kind = styled((finding.severity.value, STYLES[finding.severity]))
    title = styled(kind, " ", (finding.place.where, PLACE), ": ", (finding.title, TITLE), f"  [{finding.code}]")
    yield Paragraph(title)
    code = " ".join(finding.place.code.split())
    if code:
        yield Paragraph(styled((pen.clipped(code, 90), "italic")), indent=6)
    for sentence in finding.happened:
        yield Paragraph(Text(sentence), indent=4)
    yield Paragraph(styled(("Why: ", TITLE), finding.why), indent=4)
    yield Paragraph(styled(("Fix: ", TITLE), finding.fix), indent=4)
    if finding.intended:
        yield Paragraph(styled(("Intended if ", TITLE), _sentence(finding.intended)), indent=4)
    if pen.verbose:
        rows = [
            (Text(one.place.where if one.place is not None else ""), Text(one.text))
            for one in finding.evidence[:EVIDENCE] or ()
        ]
        if rows:
            yield Rows(rows, indent=6)


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."
