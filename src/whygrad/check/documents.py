"""Checks pages: every block of Python runs, and what the page says of it is compared with what happens."""

from __future__ import annotations

import doctest
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from whygrad.check import comments
from whygrad.check.block import Block, Page
from whygrad.check.defect import Checked, Defect, Name, Skipped
from whygrad.check.problems import OTHER_SEED, needed
from whygrad.check.runner import Runner
from whygrad.errors import BadInput
from whygrad.execute.jobs import Done, Failure, Job, Limits, Result, Step
from whygrad.practice import published
from whygrad.practice.settle import shorten

LIMITS = Limits(time_s=60.0)


class Renewal(msgspec.Struct, frozen=True):
    """What an update writes: lines `first` to `last` (excluded) of a file become `text`; with `column`, only that
    much of one line, from there to `until`."""

    path: str
    first: int
    last: int
    text: str
    column: int = -1
    until: int = 0


class _Claim(msgspec.Struct):
    """Something a page says of one step of its program. `kind`: printed, value, raises, session or runs."""

    kind: str
    step: int
    said: str
    line: int
    block: Block
    renewal: Renewal | None = None
    raises: str | None = None


class _Program(msgspec.Struct):
    """The steps of one child, and the claims about them."""

    page: Page
    steps: list[Step] = []
    claims: list[_Claim] = []
    files: dict[str, str] = {}

    def job(self, seed: int = 0) -> Job:
        return Job(tuple(self.steps), self.files, seed, 1 if not seed else 2, False, LIMITS)


def text_of(path: str) -> str:
    """The text of a file. Raises BadInput."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: is not UTF-8 text (byte 0x{error.object[error.start]:02x}).") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}.") from None


def check_pages(paths: Sequence[str], runner: Runner, engine: str, renewals: list[Renewal] | None = None) -> Checked:
    """What is wrong with pages. What an update would write is added to `renewals`."""
    checked = Checked()
    programs: list[_Program] = []
    for path in paths:
        text = text_of(path)
        if Path(path).suffix.lower() in (".txt", ".text"):
            from whygrad.check.formats import quiz

            found = quiz.problems(path, text)
            if found:
                from whygrad.check.problems import check_problems

                unsettled = tuple(Skipped(path, one.line, one.why) for one in quiz.unsettled(path, text))
                checked += check_problems(found, runner, [engine])
                checked += Checked(len(unsettled), 0, unsettled, (), (path,))
                continue
        page = read(path, text)
        skipped = tuple(Skipped(path, block.line, block.skip) for block in page.blocks if block.skip)
        ran = sum(1 for block in page.blocks if not block.skip)
        defects = tuple(
            Defect(Name.SKIPPED_BLOCK, path, one.line, one.info or "a fence without a language", one.why)
            for one in page.unknown
        )
        found_count = len(page.blocks) + len(page.unknown)
        unknown = tuple(Skipped(path, one.line, "it is not marked as Python") for one in page.unknown)
        checked += Checked(found_count, ran, skipped + unknown, defects, (path,))
        programs += _programs(page)
    results = runner.run([program.job() for program in programs], engine) if programs else []
    for program, result in zip(programs, results, strict=True):
        failed = _failed(program, result)
        if any(defect.name is Name.WRONG_OUTPUT for _, defect in failed):
            (other,) = runner.run([program.job(OTHER_SEED)], engine, 1)
            failed = [(claim, _unstable(claim, defect, result, other)) for claim, defect in failed]
        checked += Checked(defects=tuple(defect for _, defect in failed))
        if renewals is not None:
            renewals += [one for claim, _ in failed if (one := _renewal(claim, result)) is not None]
    return checked


def read(path: str, text: str) -> Page:
    """The blocks of a file, by its format."""
    suffix = Path(path).suffix.lower()
    if suffix == ".ipynb":
        from whygrad.check.formats import notebook

        return notebook.page(path, text)
    if suffix == ".rst":
        from whygrad.check.formats import restructured

        return restructured.page(path, text)
    if suffix == ".py":
        from whygrad.check.formats import docstrings

        return docstrings.page(path, text)
    if suffix in (".txt", ".text"):
        from whygrad.check.formats import quiz

        return quiz.page(path, text)
    from whygrad.check.formats import markdown

    return markdown.page(path, text)


# --- from a page to programs ----------------------------------------------------------------------------


def _programs(page: Page) -> list[_Program]:
    files = {block.title: block.source for block in page.blocks if block.title and "/" not in block.title}
    shared = _Program(page, [], [], files)
    found = [shared]
    for number, block in enumerate(page.blocks, 1):
        if block.skip:
            continue
        if block.alone:
            own = _Program(page, [], [], files)
            found.append(own)
            _add(own, block, number)
            continue
        if block.fresh:
            shared = _Program(page, [], [], files)
            found.append(shared)
        _add(shared, block, number)
    return [program for program in found if program.steps]


def _add(program: _Program, block: Block, group: int) -> None:
    """A block's steps and claims."""
    path = program.page.path
    if block.prelude:
        program.steps.append(Step(block.prelude, "<prelude>", group=group))
    first = len(program.steps)
    if block.is_doctest:
        _add_session(program, block, group)
        return
    try:
        parts = comments.statements(block.source)
    except SyntaxError:
        parts = []
    if not any(part.claim or part.error for part in parts):
        shows = block.value is not None
        program.steps.append(Step(block.source, path, block.line, group, shows=shows))
    else:
        for part in parts:
            step = len(program.steps)
            is_value = bool(part.claim) and not part.is_print
            own = group if not part.error else -len(program.steps) - 1  # what is said to raise ends nothing
            program.steps.append(Step(part.source, path, block.line + part.line - 1, own, shows=is_value))
            line = block.line + part.claim_line - 1
            if part.error:
                program.claims.append(_Claim("raises", step, part.error, line, block, raises=part.error))
            elif part.claim:
                column = part.column
                renewal = Renewal(path, line, line + 1, "", column, column + len(part.claim))
                program.claims.append(
                    _Claim("value" if is_value else "printed", step, part.claim, line, block, renewal)
                )
    last = len(program.steps) - 1
    program.claims.append(_Claim("runs", last, "", block.line, block, raises=block.raises))
    program.claims[-1].step = last
    if block.output is not None or block.value is not None:
        output = block.output
        said = output.text if output is not None else ""
        shown = Renewal(path, output.first, output.last, output.prefix) if output and output.first else None
        line = output.first if output and output.first else block.line
        program.claims.append(_Claim(f"output {first}", last, said, line, block, shown))


def _add_session(program: _Program, block: Block, group: int) -> None:
    for example in doctest.DocTestParser().get_examples(block.source):
        options = example.options
        if options.get(doctest.SKIP):
            continue
        step = len(program.steps)
        line = block.line + example.lineno
        program.steps.append(Step(example.source, program.page.path, line, -step - 1, shows=True))
        raised = None
        if example.exc_msg is not None:
            raised = example.exc_msg.split(":")[0].strip().split(".")[-1]
        program.claims.append(_Claim("session", step, example.want, line, block, raises=raised))
    del group


# --- comparing --------------------------------------------------------------------------------------------


def _failed(program: _Program, result: Result) -> list[tuple[_Claim, Defect]]:
    found = []
    reported: set[int] = set()
    for claim in program.claims:
        defect = _defect(program, claim, result)
        if defect is None:
            continue
        if defect.name in (Name.DOES_NOT_RUN, Name.NOT_SELF_CONTAINED):
            if claim.block.line in reported:
                continue
            reported.add(claim.block.line)
        elif claim.block.line in reported and claim.kind != "runs":
            continue
        found.append((claim, defect))
    return found


def _defect(program: _Program, claim: _Claim, result: Result) -> Defect | None:
    done = result.steps[claim.step]
    path = program.page.path
    if claim.kind == "runs":
        return _does_not_run(program, claim, result)
    if claim.kind == "raises" or claim.raises is not None:
        wanted = claim.raises or ""
        failure = done.failure
        if not done.ran or (failure is not None and (not wanted or failure.is_a(wanted))):
            return None
        observed = str(failure) if failure is not None else "it raises nothing"
        return Defect(Name.WRONG_OUTPUT, path, claim.line, f"raises {wanted}", observed)
    if done.failure is not None and claim.kind in ("session", "printed", "value"):
        return _of_failure(program, claim, done.failure)
    if not done.ran and not claim.kind.startswith("output"):
        return _not_reached(program, claim, result)
    if claim.kind.startswith("output"):
        return _wrong_output(program, claim, result)
    observed = observed_of(claim.kind, done)
    if _agrees(claim, done, observed):
        return None
    return Defect(Name.WRONG_OUTPUT, path, claim.line, shorten(claim.said.strip()), shorten(observed))


def _agrees(claim: _Claim, done: Done, observed: str) -> bool:
    if claim.kind == "session":
        return published.text_agrees(claim.said, observed)
    said = published.published(claim.said)
    if claim.kind == "value" and done.value is not None:
        return published.agrees(said, done.value) or published.text_agrees(claim.said, done.value.text)
    return published.printed_agrees(said, observed) or published.text_agrees(claim.said, observed)


def observed_of(kind: str, done: Done) -> str:
    """What a step shows, as the text that a page would have."""
    if kind == "value":
        return done.value.text if done.value is not None else "None"
    shown = done.printed
    if kind == "session" and done.value is not None and done.value.kind != "none":
        shown += done.value.text
    return shown.strip()


def _wrong_output(program: _Program, claim: _Claim, result: Result) -> Defect | None:
    """What a page shows as a block's output, against all that the block printed."""
    first = int(claim.kind.split()[1])
    steps = result.steps[first : claim.step + 1]
    expected = {other.step for other in program.claims if other.kind == "raises"}
    failed = any(
        not step.ran or (step.failure is not None and index not in expected) for index, step in enumerate(steps, first)
    )
    if failed and claim.block.raises is None:
        return None  # that it does not run is said already
    printed = "".join(step.printed for step in steps)
    value = claim.block.value
    if claim.block.output is not None and not _lines_agree(claim.said, printed):
        return Defect(
            Name.WRONG_OUTPUT, program.page.path, claim.line, shorten(claim.said.strip()), shorten(printed.strip())
        )
    if value is not None:
        found = steps[-1].value
        text = found.text if found is not None else "None"
        if not published.text_agrees(value, text):
            return Defect(Name.WRONG_OUTPUT, program.page.path, claim.line, shorten(value), shorten(text))
    return None


def _lines_agree(said: str, printed: str) -> bool:
    """Line by line; a line of three dots alone stands for any lines."""
    if "..." in said:
        return published.text_agrees(said, printed)
    left = [line for line in said.rstrip().splitlines() if line.strip()]
    right = [line for line in printed.rstrip().splitlines() if line.strip()]
    return len(left) == len(right) and all(map(published.text_agrees, left, right))


def _does_not_run(program: _Program, claim: _Claim, result: Result) -> Defect | None:
    """Whether a block runs to its end, or fails as it is said to."""
    block = claim.block
    mine = [
        (index, step)
        for index, step in enumerate(program.steps)
        if step.path == program.page.path and block.line <= step.line <= block.line + block.source.count("\n")
    ]
    expected = {other.step for other in program.claims if other.kind == "raises"}
    failed = [
        (index, result.steps[index].failure)
        for index, _ in mine
        if result.steps[index].failure and index not in expected
    ]
    if block.raises is not None:
        failure = failed[0][1] if failed else None
        if failure is None:
            said = f"raises {block.raises or 'an error'}"
            return Defect(Name.WRONG_OUTPUT, program.page.path, block.line, said, "it runs to its end")
        if block.raises and not failure.is_a(block.raises):
            return Defect(Name.WRONG_OUTPUT, program.page.path, block.line, f"raises {block.raises}", str(failure))
        return None
    if failed and failed[0][1] is not None:
        return _of_failure(program, claim, failed[0][1])
    if result.stopped and any(not result.steps[index].ran for index, _ in mine):
        return _not_reached(program, claim, result)
    return None


def _of_failure(program: _Program, claim: _Claim, failure: Failure) -> Defect:
    path = program.page.path
    line = failure.line or claim.line
    source = "".join(step.source for step in program.steps[: claim.step + 1])
    needs = needed(failure, source)
    if needs:
        return Defect(Name.NOT_SELF_CONTAINED, path, line, needs, str(failure))
    said = claim.said.strip() or "a block that runs"
    if claim.said.strip():
        return Defect(Name.WRONG_OUTPUT, path, claim.line, shorten(said), f"it raises {failure}")
    return Defect(Name.DOES_NOT_RUN, path, line, said, str(failure))


def _not_reached(program: _Program, claim: _Claim, result: Result) -> Defect | None:
    if not result.stopped:
        return None
    return Defect(
        Name.DOES_NOT_RUN, program.page.path, claim.line, claim.said.strip() or "a block that runs", result.why
    )


def _unstable(claim: _Claim, defect: Defect, one: Result, other: Result) -> Defect:
    """The defect, or that the output differs from run to run, where that is what is wrong with it."""
    if defect.name is not Name.WRONG_OUTPUT:
        return defect
    first = int(claim.kind.split()[1]) if claim.kind.startswith("output") else claim.step
    texts = [
        "".join(observed_of(claim.kind, step) + "\n" for step in result.steps[first : claim.step + 1])
        for result in (one, other)
    ]
    if published.text_agrees(texts[0], texts[1]) or re.search(r"raise", defect.observed):
        return defect
    observed = f"{shorten(texts[0].strip(), 80)}, and with another seed {shorten(texts[1].strip(), 80)}"
    return Defect(Name.UNSTABLE, defect.path, defect.line, defect.published, observed)


def _renewal(claim: _Claim, result: Result) -> Renewal | None:
    """What an update writes in place of a claim: what was found, if that is a fact and no error."""
    done = result.steps[claim.step]
    if claim.renewal is None or not done.ran or done.failure is not None:
        return None
    if claim.kind.startswith("output"):
        steps = result.steps[int(claim.kind.split()[1]) : claim.step + 1]
        printed = "".join(step.printed for step in steps).rstrip("\n")
        prefix = claim.renewal.text
        return msgspec.structs.replace(claim.renewal, text="".join(f"{prefix}{line}\n" for line in printed.split("\n")))
    found = observed_of(claim.kind, done)
    return None if "\n" in found else msgspec.structs.replace(claim.renewal, text=found)
