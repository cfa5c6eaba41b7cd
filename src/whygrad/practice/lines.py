"""Practice line by line: what is printed is plain text, what is typed is one line. For any terminal, pipe or reader."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from whygrad.execute.children import Runs, run_in_order
from whygrad.practice import exercise
from whygrad.practice.problem import Engine, Kind, Problem
from whygrad.practice.progress import Progress
from whygrad.practice.settle import Plan, Settlement, text_is_right

WIDTH = 78
ATTEMPTS = 2
MAKE_RUNS = Callable[[str], Runs]


class Quit(Exception):  # noqa: N818  (a wish, not an error)
    """The learner is done for now."""


class Lines:
    """A session. `ask` prompts for a line (EOFError ends it), `say` prints one; `runs` gives children of an engine."""

    def __init__(
        self, progress: Progress, runs: MAKE_RUNS, ask: Callable[[str], str], say: Callable[[str], None]
    ) -> None:
        self._progress = progress
        self._runs = runs
        self._ask = ask
        self._say = say
        self._engines: set[str] = set()

    def practise(self, problems: Sequence[Problem]) -> None:
        """Go through the problems, those that are not solved yet first; ends when there are no more, or at `q`."""
        try:
            for number, problem in enumerate(problems, 1):
                self._say("")
                self._say(f"[{number} of {len(problems)}] {problem.front.title}")
                front = problem.front
                self._say(f"{front.kind.value}, {front.level.value}, {', '.join(front.topics)} ({front.id})")
                self._one(problem)
        except (Quit, EOFError, KeyboardInterrupt):
            self._say("")
            self._say("Until next time. Every answer is kept.")
            return
        self._say("")
        self._say("That was the last one.")

    def _one(self, problem: Problem) -> None:
        self._show(problem)
        if problem.front.kind is Kind.EXPLAIN:
            self._explain(problem)
        elif problem.front.kind is Kind.CODE:
            self._code(problem)
        else:
            self._choose(problem)

    def _show(self, problem: Problem) -> None:
        self._paragraphs(problem.question)
        if problem.code is not None:
            self._say("")
            for number, line in enumerate(problem.code.text.splitlines(), 1):
                self._say(f"  {number:>2}  {line}".rstrip())
        if problem.edit is not None:
            self._say("")
            for line in problem.edit.old:
                self._say(f"  instead of:  {line}")
            for line in problem.edit.new:
                self._say(f"  now:         {line}")
        if problem.options:
            self._say("")
        for option in problem.options:
            self._wrapped(option.text, f"  {option.letter}  ")
            for line in option.code.splitlines():
                self._say(f"       {line}")
        self._say("")

    # --- options, or a value to type ----------------------------------------------------------------

    def _choose(self, problem: Problem) -> None:
        hints = wrong = 0
        letters = [option.letter for option in problem.options]
        actions = f"{letters[0]}-{letters[-1]} answer" if letters else "type the value"
        while True:
            typed = self._ask(f"{actions}, h hint, s skip, q quit: ").strip()
            command = typed.lower()
            if command == "q":
                raise Quit
            if command == "s":
                return
            if command == "h":
                hints = self._hint(problem, hints)
                continue
            if not typed or (letters and command.upper() not in letters):
                self._say(f"Type one of {', '.join(letters)}, or h, s, q." if letters else "Type a value, or h, s, q.")
                continue
            settled = self._settled(problem)
            answer = command.upper() if letters else typed
            right, what = self._judged(problem, settled, answer)
            self._progress.answered(problem, answer, is_right=right, hints=hints)
            self._say("")
            self._say("Right." if right else "No.")
            if what:
                self._wrapped(what, "  The run shows: ")
            chosen = next((option for option in problem.options if option.letter == answer), None)
            if chosen is not None and not right and chosen.feedback:
                self._wrapped(chosen.feedback, "  ")
            wrong += not right
            if right or wrong >= ATTEMPTS:
                if not right and settled.observed:
                    self._wrapped(settled.observed, "  The run shows: ")
                self._reveal(problem, answer, right)
                return
            self._say("  Try once more.")

    def _judged(self, problem: Problem, settled: Settlement, answer: str) -> tuple[bool, str]:
        """Whether the runs bear an answer out, and what they show: not what would give the key away too early."""
        if problem.options:
            index = [option.letter for option in problem.options].index(answer)
            shown = settled.options[index]
            values = problem.front.kind in (Kind.PREDICT, Kind.WHAT_IF)
            return shown.holds, "" if values and not shown.holds else shown.what
        base = settled.base
        assert base is not None
        replies = base.steps[0].replies
        right = text_is_right(answer, base, replies[0] if replies else None)
        return right, settled.observed if right else ""

    def _settled(self, problem: Problem) -> Settlement:
        plan = Plan(problem)
        return plan.settle(run_in_order(self._children(problem), plan.jobs))

    def _children(self, problem: Problem) -> Runs:
        engines = problem.front.engines
        return self._runs("embedded" if Engine.EMBEDDED in engines else engines[0].value)

    def _hint(self, problem: Problem, given: int) -> int:
        if given >= len(problem.hints):
            self._say("There is no further hint.")
            return given
        self._wrapped(problem.hints[given].text, f"Hint {given + 1} of {len(problem.hints)}: ")
        return given + 1

    def _reveal(self, problem: Problem, answer: str, right: bool) -> None:
        """The key, the explanation, and for each other option which mistake leads to it."""
        key = problem.key
        if key is not None and not right:
            self._wrapped(f"{key.letter}: {key.text}", "The answer is ")
        elif problem.answer is not None and not right:
            self._wrapped(problem.answer.text, "The answer is ")
        self._say("")
        if problem.explanation is not None:
            self._paragraphs(problem.explanation.text)
        others = [
            option for option in problem.options if option is not key and option.letter != answer and option.feedback
        ]
        if others:
            self._say("")
        for option in others:
            self._wrapped(option.feedback, f"  {option.letter}: ")
        if problem.follow_ups:
            self._say("")
        for note in problem.follow_ups:
            self._wrapped(re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", note.text), "Next: ")

    # --- code, and free text --------------------------------------------------------------------------

    def _code(self, problem: Problem) -> None:
        name = f"{problem.front.id.replace('-', '_')}.py"
        path = Path(name)
        if not path.exists() and problem.code is not None:
            path.write_text(problem.code.text, encoding="utf-8")
        self._say(f"Write your solution in {name}; what you see above is in it.")
        hints = 0
        while True:
            command = self._ask("Enter to judge it, h hint, r reveal, s skip, q quit: ").strip().lower()
            if command == "q":
                raise Quit
            if command == "s":
                return
            if command == "h":
                hints = self._hint(problem, hints)
            elif command == "r":
                assert problem.solution is not None
                for line in problem.solution.text.splitlines():
                    self._say(f"  {line}".rstrip())
                return
            elif command == "":
                source = path.read_text(encoding="utf-8") if path.exists() else ""
                (result,) = run_in_order(self._children(problem), [exercise.job(problem, source)])
                judged = exercise.judge(problem, result)
                self._progress.answered(problem, "code", is_right=judged.passes, hints=hints)
                if judged.passes:
                    self._say("Right: every check holds.")
                    self._reveal(problem, "", True)
                    return
                self._wrapped(f"{judged.check}: {judged.why}" if judged.check else judged.why, "Not yet: ")

    def _explain(self, problem: Problem) -> None:
        written = []
        while line := self._ask("Your words (an empty line ends them, q quits): ").strip():
            if line.lower() == "q":
                raise Quit
            written.append(line)
        met = 0
        for note in problem.checklist:
            self._wrapped(note.text, "- ")
            met += self._ask("Did you say so? y or n: ").strip().lower().startswith("y")
        self._progress.answered(problem, "\n".join(written), is_right=met == len(problem.checklist), hints=0)
        self._say(f"{met} of {len(problem.checklist)}")
        self._reveal(problem, "", True)

    # --- text ----------------------------------------------------------------------------------------

    def _paragraphs(self, text: str) -> None:
        for part in re.split(r"\n\s*\n", text.strip()):
            self._wrapped(part, "")

    def _wrapped(self, text: str, lead: str) -> None:
        plain = " ".join(text.replace("`", "").split())
        for line in textwrap.wrap(plain, WIDTH, initial_indent=lead, subsequent_indent=" " * min(len(lead), 8)):
            self._say(line)


def in_order(problems: Sequence[Problem], progress: Progress) -> list[Problem]:
    """Those that were answered wrongly, then the new ones by level, then what is solved."""
    levels = ["intermediate", "advanced", "expert"]

    def place(problem: Problem) -> tuple[int, int]:
        right = progress.standing(problem).right
        return {False: 0, None: 1, True: 2}[right], levels.index(problem.front.level.value)

    return sorted(problems, key=place)


def listing(problems: Sequence[Problem], progress: Progress) -> Iterator[str]:
    """A line a problem: how it stands, its id, kind and level."""
    words = {None: "open", True: "solved", False: "wrong"}
    for problem in problems:
        front = problem.front
        standing = words[progress.standing(problem).right]
        yield f"{standing:<7} {front.id:<36} {front.kind.value:<8} {front.level.value}"
