"""How a problem's file is read, and what is said where it cannot be."""

from __future__ import annotations

import pytest

from whygrad.errors import BadInput
from whygrad.practice.parse import is_problem, parse
from whygrad.practice.problem import Kind, Level

WHOLE = """\
---
id: one
title: "One: the first"
kind: choice
level: advanced
topics: [leaf, graph]
check: "{option}.is_leaf"
---

# One: the first

Which of these
is a leaf?

```python
import torch

a = torch.ones(1)
```

- [x] `a`, a tensor

  It was made, and not computed.

- [ ] `b`
  <!-- check: False -->

## Hints

1. First.
2. Second,
   on two lines.

## Explanation

Since `a.is_leaf`.

## Follow-ups

- [Two](two.md)
"""


def test_its_parts_are_found_with_their_lines() -> None:
    problem = parse(WHOLE, "one.md")
    assert (problem.front.kind, problem.front.level, problem.front.topics) == (
        Kind.CHOICE,
        Level.ADVANCED,
        ("leaf", "graph"),
    )
    assert problem.question == "Which of these\nis a leaf?"
    assert problem.code is not None
    assert (problem.code.line, problem.code.text.splitlines()[0]) == (16, "import torch")
    first, second = problem.options
    assert (first.letter, first.keyed, first.value, first.feedback) == (
        "A",
        True,
        "a",
        "It was made, and not computed.",
    )
    assert (second.check, second.text, second.line) == ("False", "`b`", 25)
    assert [hint.text for hint in problem.hints] == ["First.", "Second,\n   on two lines."]
    assert problem.explanation is not None
    assert problem.explanation.line == 36
    assert problem.key is first


def test_other_markdown_is_no_problem() -> None:
    assert is_problem(WHOLE)
    assert not is_problem("---\ntitle: a page\n---\n\n# A page\n")
    assert not is_problem("# A page\n\nkind: predict\n")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("kind: choice", "kind: riddle", "one.md:1: front matter: invalid enum value 'riddle'"),
        ("level: advanced\n", "", "one.md:1: front matter: object missing required field `level`"),
        ("topics: [leaf, graph]", "topics: [leaf", "one.md:7: the front matter is not YAML"),
        ("id: one", "id: One!", "the id 'One!' has other characters"),
        ("- [x]", "- [ ]", "0 options are marked [x]"),
        ("- [ ] `b`", "- [x] `b`", "one.md:25: 2 options are marked [x]"),
        ('check: "{option}.is_leaf"\n', "", "one.md:20: option A has no check"),
        ("<!-- check: False -->", "<!-- chek: False -->", "an option has check:, fix: or code:, not chek:"),
        ("```python\n", "```pyhton\n", "a block of `pyhton` in the question is not run"),
        ("---\n", "", "one.md:1: has no front matter"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(old: str, new: str, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse(WHOLE.replace(old, new, 1), "one.md")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
