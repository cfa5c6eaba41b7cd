"""The lines at the top: what ran, how it ended, on what."""

from __future__ import annotations

from rich.text import Text

from whygrad.report.parts import Run
from whygrad.report.sheet import BAD, GOOD, NAME, Pen, styled
from whygrad.report.wording import say_plural

ENGINES = {"pytorch": "PyTorch", "embedded": "the embedded engine"}

ENDINGS = {
    "returned": "returned",
    "exit": "ended by sys.exit",
    "exception": "stopped by an exception",
    "interrupted": "interrupted",
    "terminated": "terminated",
}


def header(run: Run, pen: Pen) -> list[Text]:
    """Two lines, what the recording itself lacks first of all; more where the run left something to say."""
    lines = [_program(run)]
    if run.broken:
        lines.append(
            styled((f"The recording broke down: {run.broken}. Nothing below tells what the program did.", BAD))
        )
    lines.append(Text(", ".join(_setting(run))))
    if run.settings_changed and pen.verbose:
        changes = "; ".join(change.replace("->", pen.glyphs.arrow) for change in run.settings_changed)
        lines.append(Text(f"changed by the program: {changes}"))
    if run.torn:
        lines.append(styled((run.torn, BAD)))
    return lines


def _program(run: Run) -> Text:
    arguments = " ".join(run.argv[1:])
    program = styled((run.program, NAME), f" {arguments}" if arguments else "", "  ")
    if not run.how:
        return program + styled(("the ledger breaks off before the program ended", BAD))
    if run.kind == "block":  # the program goes on
        return program + styled(("the recorded block raised", BAD) if run.exit_code else ("a recorded block", GOOD))
    ending = ENDINGS.get(run.how, run.how)
    code = f", exit code {run.exit_code}" if run.exit_code is not None else ""
    return program + styled((ending + code, BAD if run.exit_code else GOOD))


def _setting(run: Run) -> list[str]:
    engine = ENGINES.get(run.engine, run.engine)
    facts = [
        f"Python {run.python}" if run.python else "",
        f"{engine} {run.engine_version}".strip() if run.engine_version else f"no {engine or 'engine'} was imported",
        f"NumPy {run.numpy}" if run.numpy else "",
        run.platform,
        run.device if run.device not in ("", "cpu") else "",
        _threads(run),
        f"default dtype {run.default_dtype}" if run.default_dtype not in ("", "float32", "torch.float32") else "",
        _seeds(run),
        "deterministic algorithms" if run.deterministic else "",
    ]
    return [fact for fact in facts if fact]


def _threads(run: Run) -> str:
    if run.threads is None:
        return ""
    by_program = any(change.startswith("threads") for change in run.settings_changed)
    return say_plural(run.threads, "thread") + (" (set by the program)" if by_program else "")


def _seeds(run: Run) -> str:
    if not run.seeds:
        return "no seed was set in the block" if run.kind == "block" else "no seed was set"
    return ", ".join(
        f"{seed.generator} seed {seed.seed}" + (f" (the last of {seed.times})" if seed.times > 1 else "")
        for seed in run.seeds
    )
