"""What a segment's answer is worth: the sentence of its text that it rests on, and how much of the question it holds.

Judges by words alone, so that it holds for models too small to say that they do not know. Knows no model's weights,
no library.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from core.books import prompt
from core.routing import STOP, coverage, words

MIN_SUPPORT = 0.5  # share of the question's words, by weight, that must stand by what an answer quotes
_SENTENCE = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|\n\s*\n")
_NAME = re.compile(r"(?<=[\w,;:)] )[A-Z][\w-]+|\b\d[\w.,-]*\w\b|\b\d\b")


@dataclass(frozen=True)
class SegmentAnswer:
    """What one segment said. Ranges count characters of `file`'s text: [start, end) is the segment,
    [quote_start, quote_end) the sentence that the answer rests on, if there is one.

    `known`: it answered, its answer stands in its text, and the question's words stand beside it (`support`, 0 to 1).
    `logprob`: the mean natural logarithm of its tokens' probabilities. `score`: that of the routing.
    """

    ordinal: int
    segment: str
    artifact: str | None
    file: str
    start: int
    end: int
    text: str
    known: bool
    note: str
    quote: str = ""
    quote_start: int | None = None
    quote_end: int | None = None
    support: float = 0.0
    logprob: float = 0.0
    score: float = 0.0
    attended_tokens: int = 0
    prefill_tokens: int = 0
    decode_tokens: int = 0
    first_token_seconds: float = 0.0
    seconds: float = 0.0


def reconcile(answers: Sequence[SegmentAnswer]) -> tuple[SegmentAnswer | None, list[SegmentAnswer]]:
    """The answer to give, or None, and all that say the same.

    Most support first; among equals the answer that more segments gave, then the likelier one.
    """
    known = [said for said in answers if said.known]
    if not known:
        return None, []
    same = {said.ordinal: [other for other in known if _same(said.text, other.text)] for said in known}
    best = max(known, key=lambda said: (round(said.support, 2), len(same[said.ordinal]), said.logprob, -said.ordinal))
    return best, same[best.ordinal]


@dataclass(frozen=True)
class Quote:
    """Characters [start, end) of a text, and how much of the question stands there."""

    start: int
    end: int
    support: float


def locate(answer: str, question: str, text: str, weights: Mapping[str, float]) -> Quote | None:
    """The sentence (or two neighbours) of `text` with all that the answer says and the question does not.

    None if there is none: the answer then does not come from the text. The best by the question's words is taken.
    """
    asked = set(words(question))
    key = {word for word in words(answer) if word not in asked and word not in STOP}
    if not key:
        return None
    spans = _sentences(text)
    for together in (1, 2):
        found: list[Quote] = []
        for number in range(len(spans) - together + 1):
            start, end = spans[number][0], spans[number + together - 1][1]
            if key <= set(words(text[start:end])):
                found.append(Quote(start, end, coverage(weights, text[start:end])))
        if found:
            return max(found, key=lambda quote: quote.support)
    return None


def names_missing(question: str, text: str) -> list[str]:
    """Names and numbers of a question that do not occur in `text`: then it speaks of something else."""
    held = set(words(text))
    return [name for name in _NAME.findall(question) if not set(words(name)) <= held]


def judged(said: SegmentAnswer, question: str, text: str, weights: Mapping[str, float]) -> SegmentAnswer:
    """The answer with its quote, and whether the segment knew. Small models seldom say that they do not know, so an
    answer counts only if its text holds it, beside the question's names and most of its words."""
    if prompt.says_unknown(said.text):
        return replace(said, note="says that its text does not hold the answer")
    quote = locate(said.text, question, text, weights)
    if quote is None:
        return replace(said, note=f"its answer {said.text[:60]!r} is not in its text")
    start, end = said.start + quote.start, said.start + quote.end
    said = replace(said, quote=text[quote.start : quote.end].strip(), quote_start=start, quote_end=end)
    said = replace(said, support=quote.support)
    if missing := names_missing(question, _around(text, quote)):
        return replace(said, note=f"what it quotes does not speak of {', '.join(missing[:3])}")
    if quote.support < MIN_SUPPORT:
        return replace(said, note="what it quotes has too few of the question's words")
    return replace(said, known=True)


def _sentences(text: str) -> list[tuple[int, int]]:
    spans, start = [], 0
    for border in _SENTENCE.finditer(text):
        if border.end() > start:
            spans.append((start, border.end()))
            start = border.end()
    if start < len(text):
        spans.append((start, len(text)))
    return spans


def _around(text: str, quote: Quote) -> str:
    """The quoted sentences with one on either side: a pronoun's name mostly stands there."""
    spans = _sentences(text)
    touched = [n for n, (start, end) in enumerate(spans) if start < quote.end and end > quote.start]
    return text[spans[max(0, touched[0] - 1)][0] : spans[min(len(spans) - 1, touched[-1] + 1)][1]]


def _same(first: str, second: str) -> bool:
    return [w for w in words(first) if w not in STOP] == [w for w in words(second) if w not in STOP]
