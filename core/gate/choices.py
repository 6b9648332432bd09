"""Lists as sites print them: the choices of a test and entries with a bullet. Reads and writes tokens."""

from __future__ import annotations

from core.gate.quantities import NUMBER_WORDS
from core.gate.tokens import Token

_LABELS = ("$A", "$B", "$C", "$D", "$E")


def choices(tokens: list[Token]) -> list[Token]:
    """Between choices (`3 \\qquad (B)`) the name of the next one is the border: no other border stands there. Names are
    names in bold type too, and a dash after one is its number's sign."""
    tokens = _unbold(tokens)
    named = [i for i in range(len(tokens) - 2) if tokens[i].text == "(" and tokens[i + 2].text == ")"]
    places = {tokens[i + 1].text.removeprefix("$"): i for i in named}
    if not {"A", "B"} <= places.keys() or places["A"] > places["B"]:
        return tokens
    starts = [places[name] for name in "ABCDE" if name in places]
    signs = {i + 3 for i in starts if i + 4 < len(tokens) and tokens[i + 4].kind == "number"}
    gone = {i + k for i in starts for k in (-1, 3)}
    return [
        token._replace(text="-") if index in signs and token.text == "~-" else token
        for index, token in enumerate(tokens)
        if index not in gone or token.kind != "break"
    ]


def _unbold(tokens: list[Token]) -> list[Token]:
    """`(\\mathbf{A})` of choices without the bold marks, where the first four stand once each."""
    places: dict[str, list[int]] = {}
    for i in range(len(tokens) - 2):
        if tokens[i].text != "(" or not tokens[i + 1].text.startswith("\\math"):
            continue
        texts = [t.text for t in tokens[i + 1 : i + 6]]
        if texts[:2] == ["\\mathbb{C}", ")"]:  # a bold C is the set of complex numbers elsewhere
            places.setdefault("$C", []).append(i)
        elif len(texts) == 5 and texts[:2] == ["\\mathbf", "{"] and texts[2] in _LABELS and texts[3:] == ["}", ")"]:
            places.setdefault(texts[2], []).append(i)
    if not {*_LABELS[:4]} <= places.keys() or any(len(found) > 1 for found in places.values()):
        return tokens
    gone = {i + k for label, (i,) in places.items() if label != "$C" for k in (1, 2, 4)}
    out = [token for index, token in enumerate(tokens) if index not in gone]
    return [Token("letter", "$C", t.start, t.end, t.math) if t is tokens[places["$C"][0] + 1] else t for t in out]


def bullets(tokens: list[Token]) -> list[Token]:
    """`- For each` after a colon or the end of a sentence is an entry of a list: nothing is taken away there."""
    out = list(tokens)
    for index in range(1, len(out) - 1):
        before, after = out[index - 1], out[index + 1]
        capital = len(after.text) > 1 and after.text[0].isupper() and after.text[1:].islower()
        entry = after.kind == "word" and capital and after.text.lower() not in NUMBER_WORDS
        if (
            out[index].text in ("-", "~-", "*")
            and not out[index].math
            and entry
            and before.text in (".", ":", ";", "?", "!")
        ):
            out[index] = Token("punct", "•", out[index].start, out[index].end)
    return out
