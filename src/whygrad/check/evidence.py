"""What `whygrad why` says of a run that contradicts what was published."""

from __future__ import annotations

import re

import msgspec

from whygrad.check.runner import Runner
from whygrad.errors import WhygradError
from whygrad.execute.jobs import Result, Step
from whygrad.ledger import Ledger
from whygrad.ledger.events import AnyEvent, Header
from whygrad.practice.problem import Problem
from whygrad.practice.settle import Plan

ASKED = re.compile(r"[A-Za-z_][\w.]*(?:\[\d+\])?\.grad\b")


def reason(problem: Problem, base: Result, runner: Runner, engine: str) -> str:
    """One sentence on why the run is as it is: of its error, else of the gradient that the problem speaks of."""
    code = problem.code.text if problem.code is not None else ""
    asked = ASKED.search(f"{problem.front.ask} {code.strip().splitlines()[-1] if code.strip() else ''}")
    subject = "error" if base.failure is not None else asked[0] if asked is not None else ""
    return why(code, subject, runner, engine, Plan(problem).jobs[0].files) if code and subject else ""


def why(code: str, subject: str, runner: Runner, engine: str, files: dict[str, str] | None = None) -> str:
    """The headline of the answer to `whygrad why program.py SUBJECT`; "" where there is none."""
    from whygrad.answers.why import why as ask
    from whygrad.execute.jobs import Job

    (result,) = runner.run([Job((Step(code),), files or {}, records=True)], engine)
    ledger = ledger_of(result)
    if ledger is None:
        return ""
    try:
        answer = ask(ledger, subject, None)
    except WhygradError:
        return ""
    except Exception:  # a question that the answers cannot take yet is no reason to lose the defect
        return ""
    return answer.headline.text


def ledger_of(result: Result) -> Ledger | None:
    """The ledger of a recorded job."""
    lines = result.events.splitlines()
    if not lines:
        return None
    header = msgspec.json.decode(lines[0], type=Header)
    decoder = msgspec.json.Decoder(AnyEvent)
    return Ledger(header, [decoder.decode(line) for line in lines[1:]])
