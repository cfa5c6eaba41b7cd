"""Claims in comments: `print(g)  # tensor(5.)`, the commonest form of an output in teaching code."""

from __future__ import annotations

import ast
import io
import re
import tokenize

import msgspec

from whygrad.practice import published

LEAD = re.compile(
    r"^(?:->|=>|==>|>>>?|→|⇒|prints?:?|outputs?:|out:|gives:?|result:|expected:|returns)\s*", re.IGNORECASE
)
START = re.compile(
    r"^(?:(?:torch\.)?[tT]ensor\(|torch\.Size\(|torch\.(?:float|int|bool|bfloat)\w*\b|\[|\(\s*(?:[-\d([]|tensor|True|False|None)|<\w+Backward|"
    r"(?:True|False|None)\b|[-+]?\d)"
)
RAISES = re.compile(r"^(?:raises?:?|error:?|→|->|this raises|will raise)?\s*(?:an? )?([A-Z]\w*(?:Error|Exception))\b")
AFTER = re.compile(r"^\s*$|^\s*[,;:(—–!]|^\s+[-—–(]|^\s*\.\s*$")


class Statement(msgspec.Struct, frozen=True):
    """One statement of a block. `claim` is the value that a comment says it prints or has, `error` the exception that
    it is said to raise; `line` and `column` are where the claim stands (the line counted from 1 in the block)."""

    source: str
    line: int
    claim: str = ""
    error: str = ""
    claim_line: int = 0
    column: int = 0
    is_print: bool = False


def statements(source: str) -> list[Statement]:
    """The top-level statements of a block with their claims. Raises SyntaxError."""
    tree = ast.parse(source)
    lines = source.splitlines()
    comments = _comments(source)
    found = []
    for index, node in enumerate(tree.body):
        start = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))])
        end = node.end_lineno or node.lineno
        following = tree.body[index + 1].lineno if index + 1 < len(tree.body) else len(lines) + 1
        column = node.col_offset if start == node.lineno else 0
        text = "\n".join(lines[start - 1 : end])
        if index + 1 < len(tree.body) and tree.body[index + 1].lineno == end:  # several on a line
            text = ast.get_source_segment(source, node) or text
            found.append(Statement(text, start))
            continue
        if index and (tree.body[index - 1].end_lineno or 0) == start:
            text = ast.get_source_segment(source, node) or text[column:]
        is_print, is_value = _kind(node)
        said, where, at = "", 0, 0
        if is_print or is_value or isinstance(node, ast.Expr | ast.Assign | ast.With | ast.AugAssign):
            said, where, at = _beside_or_below(comments, lines, end, following)
        raised = RAISES.match(LEAD.sub("", said)) if said else None
        if raised is not None:
            found.append(Statement(text, start, "", raised[1], where, at, is_print))
        elif said and (is_print or is_value) and (claim := value_in(said)):
            found.append(Statement(text, start, claim, "", where, at + said.find(claim), is_print))
        else:
            found.append(Statement(text, start, is_print=is_print))
    return found


def _comments(source: str) -> dict[int, tuple[int, str]]:
    """The comment of each line: the column of its text, and the text."""
    found = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                text = token.string.lstrip("#")
                lead = len(token.string) - len(text) + len(text) - len(text.lstrip())
                found[token.start[0]] = (token.start[1] + lead, text.strip())
    except (tokenize.TokenError, IndentationError):
        pass
    return found


def _beside_or_below(
    comments: dict[int, tuple[int, str]], lines: list[str], end: int, following: int
) -> tuple[str, int, int]:
    """The comment on a statement's last line, else one alone on the line below that says that it is output."""
    if end in comments:
        return comments[end][1], end, comments[end][0]
    below = end + 1
    if below < following and below in comments and lines[below - 1].lstrip().startswith("#"):
        column, text = comments[below]
        if LEAD.match(text) or re.match(r"(?:torch\.)?tensor\(|torch\.Size\(", text):
            return text, below, column
    return "", 0, 0


def _kind(node: ast.stmt) -> tuple[bool, bool]:
    """Whether a statement prints, and whether it is an expression that is shown for its value."""
    if not isinstance(node, ast.Expr):
        return False, False
    value = node.value
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "print":
        return True, False
    return False, not isinstance(value, ast.Constant | ast.Await | ast.Yield)


def value_in(comment: str) -> str:
    """The value that a comment begins with, "" if it is prose.

    >>> value_in("tensor([2., 4.]), since it adds"), value_in("-> True"), value_in("2. reset the buffer")
    ('tensor([2., 4.])', 'True', '')
    """
    text = LEAD.sub("", comment).strip()
    if not START.match(text):
        return ""
    whole = published.published(text)
    if not isinstance(whole, published.Text | published.Error):
        return text
    bare = re.match(
        r"(?:True|False|None)\b|torch\.(?:float|int|bool|bfloat)\w*|[-+]?\d[\d_]*\.?\d*(?:e[-+]?\d+)?", text
    )
    if text[:1] in "[(" or re.match(r"(?:torch\.)?[tT]ensor\(|torch\.Size\(|<", text):
        end = _balanced(text)
        value, rest = text[:end], text[end:]
        if not end:
            return ""
        if rest.strip() and START.match(rest.strip()) and _all_values(rest):
            return text
        if text[:1] in "[(" and not AFTER.match(rest):
            return ""
        return value
    if bare is None:
        return ""
    rest = text[bare.end() :]
    if _all_values(text):
        return text
    return bare[0] if AFTER.match(rest) and not (text[0].isdigit() and re.match(r"\s*[:)(]", rest)) else ""


def _balanced(text: str) -> int:
    """Where the first bracket of a text is closed again; 0 if it is not."""
    depth = 0
    for index, sign in enumerate(text):
        depth += (sign in "([{<") - (sign in ")]}>")
        if depth == 0 and sign in ")]}>":
            return index + 1
    return 0


def _all_values(text: str) -> bool:
    """Whether a text is a row of values, as `print(a, b)` gives."""
    rest = text.strip()
    while rest:
        if rest[0] in "[(" or re.match(r"(?:torch\.)?tensor\(|torch\.Size\(|<", rest):
            end = _balanced(rest)
        else:
            match = re.match(
                r"(?:True|False|None)(?=\s|$)|torch\.\w+(?=\s|$)|[-+]?\d[\d_]*\.?\d*(?:e[-+]?\d+)?(?=\s|$)", rest
            )
            end = match.end() if match else 0
        if not end:
            return False
        rest = rest[end:].lstrip(" ,")
    return True
