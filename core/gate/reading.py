"""What a problem's text says, as far as it can be read without a model: sentences, names, numbers, the question.

A `Reading` describes one text by itself; comparing two is done elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from core.gate.canonical import REMEMBERED, tokens_of
from core.gate.lexicon import classes, known_words, lemma, stop_words
from core.gate.memo import memo
from core.gate.plain import has_algebra
from core.gate.quantities import NUMBER_WORDS, Quantity, quantities
from core.gate.tokens import Token

_TITLES = frozenset({"mr", "mrs", "ms", "miss", "dr", "sir", "aunt", "uncle"})
_ASKING = frozenset(
    (
        "find",
        "determine",
        "calculate",
        "compute",
        "evaluate",
        "prove",
        "show",
        "solve",
        "estimate",
        "simplify",
        "express",
    )
)
_QUESTION_WORDS = frozenset({"how", "what", "which", "who", "when", "where", "whose"})
_AFTER_A_NAME = frozenset({"is", "was", "has", "had", "'s", "will", "can", "does", "did", "also", "wants", "and"})
# Capitals at the start of a sentence that name nobody.
_NOBODY = frozenset(
    "today tomorrow yesterday tonight now anyone anybody someone somebody everyone everybody noone nobody everything "  # noqa: SIM905
    "altogether afterwards afterward meanwhile overall".split()
)
_LONGEST_PHRASE = 3


class Word(NamedTuple):
    """One word of a text with its place; `load` names its class of load-bearing words, if any."""

    base: str
    raw: str
    token: int
    sentence: int
    load: str


class Reading(NamedTuple):
    """One text, read. `words` are content words, names and load-bearing words in order, numbers left out.

    `math` tells whether the text has a formula or a figure, plain text's `x + 3 = 5` too; a lone number in formula
    marks is none.
    """

    tokens: tuple[Token, ...]
    sentence_of: tuple[int, ...]
    words: tuple[Word, ...]
    numbers: tuple[Quantity, ...]
    names: frozenset[str]
    lower: frozenset[str]
    question: tuple[int, int]
    math: bool


@memo(REMEMBERED)
def read_problem(text: str) -> Reading:
    """The reading of a text. Raises `LatexError` where the text has no canonical tokens."""
    tokens = tokens_of(text)
    sentence_of = _sentences(tokens)
    numbers = tuple(quantities(tokens))
    covered = {k for q in numbers for k in range(q.first, q.last)}
    words = _content(tokens, sentence_of, covered)
    lower = frozenset(t.text for t in tokens if t.kind == "word" and t.text.islower())
    return Reading(
        tokens,
        sentence_of,
        words,
        numbers,
        _names(tokens, sentence_of, lower, covered),
        lower,
        _question(tokens, sentence_of),
        any(t.kind in ("letter", "figure", "break") or (t.math and t.kind in ("mark", "sign")) for t in tokens)
        or has_algebra(tokens),
    )


def _sentences(tokens: Sequence[Token]) -> tuple[int, ...]:
    out: list[int] = []
    current = 0
    for index, token in enumerate(tokens):
        out.append(current)
        if token.text in (".", "?", "!") and token.kind == "punct":
            before = tokens[index - 1].text.lower() if index else ""
            following = tokens[index + 1] if index + 1 < len(tokens) else None
            if before in _TITLES or (following is not None and following.text[:1].islower()):
                continue
            current += 1
    return tuple(out)


def _content(tokens: Sequence[Token], sentence_of: Sequence[int], covered: set[int]) -> tuple[Word, ...]:
    table = classes()
    stop = stop_words()
    bases = [lemma(t.text) if t.kind == "word" else t.text for t in tokens]
    low = [t.text.lower() for t in tokens]
    out: list[Word] = []
    index = 0
    while index < len(tokens):
        if tokens[index].kind != "word" and tokens[index].text not in ("%",):
            index += 1
            continue
        size, load = _phrase(low, bases, index, table)
        if load:
            out.append(Word(" ".join(bases[index : index + size]), tokens[index].text, index, sentence_of[index], load))
            index += size
            continue
        base = bases[index]
        if (
            index not in covered
            and base not in stop
            and tokens[index].text.lower() not in stop
            and tokens[index].kind == "word"
        ):
            out.append(Word(base, tokens[index].text, index, sentence_of[index], ""))
        index += 1
    return tuple(out)


def _phrase(low: Sequence[str], bases: Sequence[str], index: int, table: dict[str, str]) -> tuple[int, str]:
    for size in range(min(_LONGEST_PHRASE, len(bases) - index), 0, -1):
        # the form itself first: `left` is also a form of `leave`, which is another word
        for forms in (low, bases):
            load = table.get(" ".join(forms[index : index + size]))
            if load and low[index] != "individuals":  # people, not one by one
                return size, load
    return 0, ""


def _names(
    tokens: Sequence[Token], sentence_of: Sequence[int], lower: frozenset[str], covered: set[int]
) -> frozenset[str]:
    names: set[str] = set()
    known = known_words()
    for index, token in enumerate(tokens):
        text = token.text
        if token.kind != "word" or not text[:1].isupper() or index in covered or text.lower() in _TITLES:
            continue
        small = text.lower()
        if small in _NOBODY or small in stop_words() or small in NUMBER_WORDS or small in _ASKING or small in lower:
            continue
        starts = (
            index == 0 or sentence_of[index] != sentence_of[index - 1] or tokens[index - 1].text in ('"', "•", ":", "'")
        )
        if not starts:
            names.add(small)
            continue
        after = tokens[index + 1].text if index + 1 < len(tokens) else ""
        if after == "," and small.endswith("ly"):
            continue  # `Regrettably, one was lost`
        if (lemma(small) not in known and small not in known) or (
            after.lower() in _AFTER_A_NAME and not small.endswith("s") and small not in classes()
        ):
            names.add(small)
    return frozenset(names)


def _question(tokens: Sequence[Token], sentence_of: Sequence[int]) -> tuple[int, int]:
    """Token range [first, last) of what is asked: from the asking word in the last asking sentence to its end."""
    if not tokens:
        return 0, 0
    asking = [sentence_of[i] for i, t in enumerate(tokens) if t.text == "?"]
    if not asking:
        asking = [sentence_of[i] for i, t in enumerate(tokens) if t.kind == "word" and t.text.lower() in _ASKING]
    sentence = asking[-1] if asking else sentence_of[-1]
    first = sentence_of.index(sentence)
    last = len(sentence_of) - sentence_of[::-1].index(sentence)
    for index in range(first, last):
        small = tokens[index].text.lower()
        if (
            small in _QUESTION_WORDS
            or small in _ASKING
            or (small == "can" and tokens[index + 1 : index + 2] and tokens[index + 1].text == "you")
        ):
            # `If ..., how many ... if`: a condition round the asking words is not what is asked
            ends = (
                k
                for k in range(index + 3, last)
                if tokens[k].text.lower() in ("if", "given", "assuming", "considering")
            )
            return index, next(ends, last)
    return first, last
