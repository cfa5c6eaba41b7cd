"""Makes a text safe to read on a page: nothing unseen, nothing that reverses the rest, nothing endless."""

from __future__ import annotations

import re
from typing import Any

from markupsafe import Markup

UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
"""Control characters, what reverses the direction of text or has no width, and halves of characters."""

MOST = 1500
"""Characters of one text. Templates cut most texts shorter where they show them."""


def visible(text: Any) -> Any:
    """`text` with every unseen character written out; what is no text, or already HTML, as it is.

    >>> print(visible("a\\u202eb\\x00"))
    a\\u202eb\\x00
    """
    if not isinstance(text, str) or isinstance(text, Markup):
        return text
    if len(text) > MOST:
        text = text[:MOST] + "…"
    return UNSEEN.sub(_spelled, text)


def _spelled(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
