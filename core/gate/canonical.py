"""The canonical form: two texts that print as the same problem have the same one. Decides nothing.

What cannot be read as LaTeX, or is too long, keeps its own characters behind a mark, so it equals only itself.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from core.gate.latex import LatexError, read
from core.gate.memo import memo
from core.gate.plain import plain_letters
from core.gate.tokens import Token
from library.digest import digest_bytes

CANONICAL_VERSION: int = 4
MAX_LENGTH = 20_000
REMEMBERED = 200_000  # characters of texts whose tokens are kept; 31 MB with the readings, measured on random formulas
# After these a dash before a number is its sign: nothing stands there to take away from.
_BEFORE_A_SIGN = frozenset("is are was be and or of to than by from between equals".split())  # noqa: SIM905
_RAW = "\x00raw\x00"


def canonical(text: str) -> str:
    """The canonical form of a problem's text: its tokens with one space between. Never raises; pure."""
    try:
        return " ".join(_spelled(tokens_of(text)))
    except LatexError:
        return _RAW + unicodedata.normalize("NFC", text)


def _spelled(tokens: tuple[Token, ...]) -> Iterator[str]:
    letters = False
    for index, token in enumerate(tokens):
        if token.text == "." and (_shown_by_capital(tokens, index) or _last(tokens, index)):
            continue
        plain = plain_letters(tokens, index)
        loose = plain or (token.kind == "letter" and not token.math)
        if (loose and letters) or (index and _parted(tokens[index - 1], token, letters, plain)):
            yield "¶"  # `AB CD` in plain text are two formulas, as `$AB$ $CD$` are
        letters = bool(plain)
        if plain:
            yield from ("$" + letter for letter in plain)
        elif token.text == "~-" and index and tokens[index - 1].text in _BEFORE_A_SIGN:
            yield "-"  # `equals -5` prints as `equals $-5$` does
        elif token.text == "!" and token.kind == "punct":
            yield "!."  # an exclamation is no factorial
        else:
            yield token.text


def _parted(before: Token, token: Token, letters: bool, plain: str) -> bool:
    """Whether a plain variable meets a factor in another formula: `x $y$` is not `$xy$`, nor is `3 AB` `$3AB$`."""
    if plain:
        factor = before.kind in ("letter", "number") or before.text == "}"
        return factor and before.end < token.start and (before.math or before.kind == "number")
    return letters and token.math and (token.kind in ("letter", "number") or token.text in ("frac{", "\\sqrt"))


def _last(tokens: tuple[Token, ...], index: int) -> bool:
    """Whether a full stop ends the text, which the end shows; a second one before it may belong to something else."""
    return 0 < index == len(tokens) - 1 and tokens[index].kind == "punct" and tokens[index - 1].text not in ".…"


def _shown_by_capital(tokens: tuple[Token, ...], index: int) -> bool:
    """Whether a full stop only repeats what the capital after it shows: `balloons. Sara has`. Corpora drop it there.

    It stays next to numbers, signs, formulas, capitals and short words, where it may mean something.
    """
    if not 0 < index < len(tokens) - 1 or tokens[index].math:
        return False
    before, after = tokens[index - 1], tokens[index + 1]
    if before.kind != "word" or after.kind != "word" or before.math or after.math:
        return False
    plain = len(before.text) > 3 and before.text.isalpha() and before.text.islower()
    return plain and len(after.text) > 1 and after.text[0].isupper() and after.text[1:].islower()


def canonical_key(text: str) -> str:
    """`blake3:<64 hex>` over the version and the canonical form: the exact-lookup key of a stored problem."""
    form = f"scion-canonical-{CANONICAL_VERSION}\x00{canonical(text)}"
    return str(digest_bytes(form.encode("utf-8", "surrogatepass")))


@memo(REMEMBERED)
def tokens_of(text: str) -> tuple[Token, ...]:
    """The canonical tokens with offsets into `text`. Raises `LatexError` for what has no canonical form."""
    if len(text) > MAX_LENGTH:
        raise LatexError(f"the text has {len(text)} characters; at most {MAX_LENGTH} are compared")
    return tuple(read(text))
