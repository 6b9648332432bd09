"""Which differences between two texts keep the meaning, one rule each. Everything without a rule is unexplained.

A rule sees the differing units and their neighbours and answers with a reason, or with None. Rules say what is safe to
say without understanding the problem; when in doubt they stay silent, and the gate refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from core.gate.alike import SYNONYM, alike
from core.gate.lexicon import classes, lemma, stop_words
from core.gate.tells import article_tells, is_a_coin, mark_tells, more_compares, near
from core.gate.units import Unit


class Difference(NamedTuple):
    """Units `a[a1:a2]` of the stored text stand where the query has `b[b1:b2]`; `formal` where formulas are about."""

    a: Sequence[Unit]
    a1: int
    a2: int
    b: Sequence[Unit]
    b1: int
    b2: int
    formal: bool

    @property
    def left(self) -> tuple[str, ...]:
        return tuple(u.key for u in self.a[self.a1 : self.a2])

    @property
    def right(self) -> tuple[str, ...]:
        return tuple(u.key for u in self.b[self.b1 : self.b2])


Rule = Callable[[Difference], str | None]
_PUNCTUATION = frozenset({",", ".", ";", ":", "?", "!", '"', "'", "•", "—"})
_QUANTIFIED = frozenset({"few", "little", "lot", "couple"})
_ARTICLES = frozenset({"a", "an", "the"})
_FILLERS = frozenset({"please", "that", "then"})
_REQUESTS = frozenset({"find", "determine", "compute", "calculate", "evaluate"})
_VALUE_OF = frozenset(
    {(), ("the",), ("the", "value", "of"), ("what", "is"), ("what", "is", "the"), ("what", "is", "the", "value", "of")}
)
_MORE = frozenset({"more", "additional", "extra"})
_COMPARING = frozenset({"than", "times", "as", "how"})
_SAFE_CLASSES = frozenset({"total", "each", "buy"})
_PRODUCTS = frozenset({"×", "·", "*"})
_AUXILIARIES = frozenset(
    ("is are was were be been has have had do does did will would can could shall should may might must").split()  # noqa: SIM905
)
_CONTRACTED = {
    ("n't",): ("not",),
    ("ca", "n't"): ("can", "not"),
    ("cannot",): ("can", "not"),
    ("wo", "n't"): ("will", "not"),
}
_IS_AFTER = frozenset({"what", "it", "that", "there", "here", "how", "who", "where"})


def explain(d: Difference) -> tuple[str, str] | None:
    """(kind, reason in words) for a difference that keeps the meaning, else None. Pure."""
    for kind, rule in _RULES:
        reason = rule(d)
        if reason is not None:
            return kind, reason
    return None


def _between_numbers(units: Sequence[Unit], first: int, last: int) -> bool:
    """Whether a place in a text touches figures or signs of formulas on both sides, where a mark could be a sign."""
    before, after = near(units, first - 1), near(units, last)
    return before is not None and after is not None and _figure(before) and _figure(after)


def _figure(unit: Unit) -> bool:
    return unit.kind in ("number", "letter", "mark", "ratio", "sign") or unit.math or unit.key in ("(", ")", "[", "]")


def _punctuation(d: Difference) -> str | None:
    both = (*d.a[d.a1 : d.a2], *d.b[d.b1 : d.b2])
    if not all(u.kind == "punct" and u.key in _PUNCTUATION for u in both):
        return None  # a factorial is a sign, not an exclamation mark
    if _between_numbers(d.a, d.a1, d.a2) or _between_numbers(d.b, d.b1, d.b2):
        return None
    if any(mark_tells(units, first, last) for units, first, last in ((d.a, d.a1, d.a2), (d.b, d.b1, d.b2))):
        return None
    return "only punctuation between words differs"


def _articles(d: Difference) -> str | None:
    left = [k for k in d.left if k not in _PUNCTUATION]
    right = [k for k in d.right if k not in _PUNCTUATION]
    if not (left or right) or not set(left) | set(right) <= _ARTICLES | _FILLERS:
        return None
    if len(left) > 1 or len(right) > 1 or any(u.math for u in (*d.a[d.a1 : d.a2], *d.b[d.b1 : d.b2])):
        return None
    if (
        left
        and right
        and not {*left, *right} <= {"a", "an"}
        and ({*left, *right} & _FILLERS or article_tells(d.a, d.a1, d.a2))
    ):
        return None
    for units, first, last in ((d.a, d.a1, d.a2), (d.b, d.b1, d.b2)):
        after, before = near(units, last), near(units, first - 1)
        if after is not None and (after.key in _QUANTIFIED or ("that" in left + right and after.key in _AUXILIARIES)):
            return None  # `a few` is not `few`, `that is` is not `is`
        # `a` beside signs may be a variable; an article stands before a word or a formula and after a word
        if after is None or after.kind == "punct" or (before is not None and before.kind == "sign"):
            return None
    return "only an article or a filler word differs"


def _request(d: Difference) -> str | None:
    """`Find the value of x` and `What is x`, at the start of a sentence."""

    def asks(keys: tuple[str, ...]) -> bool:
        return (keys[:1] and keys[0] in _REQUESTS and keys[1:] in _VALUE_OF) or (
            keys[:1] == ("what",) and keys in _VALUE_OF
        )

    left, right = d.left, d.right
    if left and right and asks(left) and asks(right):
        if left[0] == "evaluate" and right[0] == "find" and len(right) == 1:
            return None
        return "both ask for the same thing in other words"
    return None


def _hyphen(d: Difference) -> str | None:
    if d.formal and any(u.math for u in (*d.a[d.a1 : d.a2], *d.b[d.b1 : d.b2])):
        return None
    if {*d.left, *d.right} == {"-"} and not (d.left and d.right):
        units, first, last = (d.a, d.a1, d.a2) if d.left else (d.b, d.b1, d.b2)
        before, after = near(units, first - 1), near(units, last)
        ahead = near(units, first - 2)
        # `twenty five-cent coins` and `twenty-five cent coins`, `100 gram-packs` and `100-gram packs`
        counted = before is not None and before.kind == "number" and before.last - before.first > 1
        packed = before is not None and before.kind == "word" and ahead is not None and ahead.kind == "number"
        if counted or packed:
            return None
        if before is not None and after is not None and after.kind == "word" and before.kind in ("word", "number"):
            return "a compound word is written with and without its hyphen"
    plain_left = "".join(k for k in d.left if k != "-")
    plain_right = "".join(k for k in d.right if k != "-")
    if plain_left == plain_right and plain_left.isalpha() and len(plain_left) > 4:
        return "a compound word is written in one and in two"
    return None


def _contraction(d: Difference) -> str | None:
    left, right = d.left, d.right
    if _CONTRACTED.get(left) == right or _CONTRACTED.get(right) == left:
        return "a contraction is written out"
    if {left, right} == {("'s",), ("is",)}:
        before = near(d.a, d.a1 - 1)
        if before is not None and before.key in _IS_AFTER:
            return "a contraction is written out"
    return None


def _inflection(d: Difference) -> str | None:
    pair = _two_words(d)
    if pair is None or d.formal:
        return None
    left, right = pair
    if left.key in _AUXILIARIES or right.key in _AUXILIARIES or left.key in stop_words() or right.key in stop_words():
        return None
    if lemma(left.text) == lemma(right.text) and left.text[:1].islower() == right.text[:1].islower():
        return "the same word in another form"
    return None


def _synonym(d: Difference) -> str | None:
    pair = _two_words(d)
    if pair is None or d.formal:
        return None
    left, right = pair
    a, b = lemma(left.text), lemma(right.text)
    table = classes()
    load_a, load_b = table.get(left.key) or table.get(a), table.get(right.key) or table.get(b)
    if load_a or load_b:
        return "two words for the same relation" if load_a == load_b and load_a in _SAFE_CLASSES else None
    if left.text[:1].isupper() or right.text[:1].isupper() or a in stop_words() or b in stop_words():
        return None
    return "two words of one meaning" if alike(a, b) == SYNONYM else None


def _phrase(d: Difference) -> str | None:
    """`in total` and `in all`, `altogether`: phrases of one class."""
    if d.formal or not d.left or not d.right:
        return None
    table = classes()
    for extra in (0, 1):
        before = near(d.a, d.a1 - 1)
        lead = (before.key,) if extra and before is not None else ()
        load_a, load_b = table.get(" ".join(lead + d.left)), table.get(" ".join(lead + d.right))
        bare_a, bare_b = table.get(" ".join(d.left)), table.get(" ".join(d.right))
        first, second = load_a or bare_a, load_b or bare_b
        if first and first == second and first in _SAFE_CLASSES:
            return "two phrases for the same relation"
    return None


def _additive(d: Difference) -> str | None:
    """`placed 3 more pencils` and `placed 3 pencils`: where nothing is compared, `more` says what `placed` says."""
    if d.formal:
        return None
    for units, first, last, other in ((d.a, d.a1, d.a2, d.right), (d.b, d.b1, d.b2, d.left)):
        keys = tuple(u.key for u in units[first:last])
        if other or len(keys) != 1 or keys[0] not in _MORE:
            continue
        low = first
        while low > 0 and units[low - 1].key not in (".", "?", "!"):
            low -= 1
        high = last
        while high < len(units) and units[high].key not in (".", "?", "!"):
            high += 1
        sentence = {u.key for u in units[low:high]}
        asked = high < len(units) and units[high].key == "?"
        if sum(u.kind == "number" for u in units[low:high]) > 1:
            continue  # `24 before noon and 18 more after noon` may compare the two
        if more_compares(units, low, first - 2):
            continue
        follows = near(units, last)
        if not asked and not sentence & _COMPARING and follows is not None and follows.kind in ("word", "punct"):
            return "`more` without a comparison only says that something is added"
    return None


def _money(d: Difference) -> str | None:
    if {d.left, d.right} == {("\\$",), ()}:
        # the words `5 dollars` leave two differences, the sign before and the word after; both must be there
        units, last, other, place = (d.a, d.a2, d.b, d.b2) if d.left else (d.b, d.b2, d.a, d.a2)
        after, word = near(other, place + 1), near(units, last)
        if is_a_coin(other, place + 2):
            return None
        if after is not None and after.key == "dollar" and word is not None and word.kind == "number":
            return "the amount is written with the sign and with the word"
    if {d.left, d.right} == {("dollar",), ()}:
        other, place = (d.b, d.b1) if d.left else (d.a, d.a1)
        if is_a_coin(d.a if d.left else d.b, d.a2 if d.left else d.b2):
            return None
        sign = near(other, place - 2)
        if sign is not None and sign.key == "\\$":
            return "the amount is written with the sign and with the word"
    return None


def _product(d: Difference) -> str | None:
    """One sign of multiplication for another between numbers."""
    if len(d.left) != 1 or len(d.right) != 1 or not {*d.left, *d.right} <= _PRODUCTS:
        return None
    before, after = near(d.a, d.a1 - 1), near(d.a, d.a2)
    if before is None or after is None or before.kind != "number" or after.kind != "number":
        return None
    for units in (d.a, d.b):
        for index in range(1, len(units) - 1):
            # `a*b = ab + 1` gives the sign a meaning of its own
            if units[index].key in _PRODUCTS and "number" not in (units[index - 1].kind, units[index + 1].kind):
                return None
    return "two signs of multiplication between numbers"


def _layout(d: Difference) -> str | None:
    """Formulas on lines of their own, or in one line with a comma or nothing before a relation."""
    left, right = d.left, d.right
    if {left, right} <= {("¶",), (",",), ("and",), (";",), (",", "and")} and ("¶",) in (left, right):
        return "two formulas stand on lines of their own and in one line"
    if {left, right} == {("¶",), ()}:
        units, last = (d.a, d.a2) if left else (d.b, d.b2)
        after = near(units, last)
        if after is not None and after.key in ("=", "<", ">", "≤", "≥", "+", "≡"):
            return "a formula is broken over two lines"
    return None


def _part_of(d: Difference) -> str | None:
    """`0.2 of a mile` and `0.2 mile`."""
    if d.formal or {d.left, d.right} - {(), ("of", "a"), ("of", "an"), ("of",)} or (d.left and d.right):
        return None
    units, first, last = (d.a, d.a1, d.a2) if d.left else (d.b, d.b1, d.b2)
    before, after = near(units, first - 1), near(units, last)
    if before is None or after is None or before.kind != "number" or after.kind != "word" or "/" not in before.key:
        return None
    return "a part of a unit, with and without `of`"


def _two_words(d: Difference) -> tuple[Unit, Unit] | None:
    left, right = d.a[d.a1 : d.a2], d.b[d.b1 : d.b2]
    if len(left) == 1 == len(right) and left[0].kind == "word" == right[0].kind:
        return left[0], right[0]
    return None


_RULES: tuple[tuple[str, Rule], ...] = (
    ("punctuation", _punctuation),
    ("article", _articles),
    ("request", _request),
    ("hyphen", _hyphen),
    ("contraction", _contraction),
    ("product", _product),
    ("layout", _layout),
    ("money", _money),
    ("part", _part_of),
    ("inflection", _inflection),
    ("phrase", _phrase),
    ("synonym", _synonym),
    ("additive", _additive),
)
