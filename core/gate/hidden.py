"""Characters that a reader does not see and that could hide a difference. Knows Unicode, nothing of problems."""

from __future__ import annotations

import re
import unicodedata

_SUSPECT = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff\ud800-\udfff\ue000-\uf8ff\U000e0000-\U0010ffff]"
)


def hidden_characters(text: str) -> str:
    """The hidden characters of a text, named for a reader, or an empty string. Linear; does not raise."""
    found = sorted(set(_SUSPECT.findall(text)))
    if not found:
        return ""
    return ", ".join(f"U+{ord(c):04X} {unicodedata.name(c, 'unnamed')}" for c in found[:5])
