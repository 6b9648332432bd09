"""Changes a problem's text in one named way, for tests, experiments and the graft lab. Knows spelling, not the gate.

Most make a near-miss; `rephrase` and `format` make a restatement. Deterministic by seed.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

#: what `mutate` can do; the value says whether the result is still the same problem
KINDS: dict[str, bool] = {
    "number": False,
    "negate": False,
    "swap_roles": False,
    "target": False,
    "qualifier": False,
    "operator": False,
    "unit": False,
    "drop": False,
    "add": False,
    "rename": False,
    "rephrase": True,
    "format": True,
}


def mutate(text: str, kind: str, seed: int = 0) -> str | None:
    """`text` changed in the way `kind` names (see `KINDS`), or None where it offers no place for that. Deterministic.

    Raises `KeyError` for an unknown kind.
    """
    maker = _MAKERS[kind]
    if not text.strip():
        return None
    rng = random.Random(f"{kind}:{seed}")
    changed = maker(text, rng)
    return changed if changed is not None and changed != text else None


_FRAMES = ("Solve the following problem. {}", "{} Give the final answer.", "Here is a problem. {}")


def variant(text: str, kind: str, seed: int = 0) -> str | None:
    """Like `mutate`, for a person who wants to see one: what offers no place for a rephrasing is put into a frame."""
    changed = mutate(text, kind, seed)
    if changed is None and kind == "rephrase" and text.strip():
        return _FRAMES[seed % len(_FRAMES)].replace("{}", text.strip())
    return changed


_NUMBER = re.compile(r"(?<![\w.,])\d+(?:\.\d+)?(?![\w]|\.\d|,\d)")
_WORD_NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_SWAPS = {
    "more": "fewer", "fewer": "more", "less": "more", "most": "least", "least": "most", "maximum": "minimum",
    "minimum": "maximum", "largest": "smallest", "smallest": "largest", "greatest": "least", "greater": "less",
    "first": "last", "last": "first", "before": "after", "after": "before", "with": "without", "without": "with",
    "twice": "four times", "half": "a quarter", "double": "triple", "increase": "decrease",
    "increased": "decreased", "decreased": "increased", "bought": "sold", "sold": "bought", "buys": "sells",
    "sells": "buys", "discount": "tax", "tax": "discount", "profit": "loss", "gained": "lost", "lost": "gained",
    "positive": "negative", "negative": "positive", "real": "complex", "complex": "real", "even": "odd",
    "odd": "even", "rational": "irrational", "prime": "composite", "distinct": "ordered",
    "integers": "real numbers", "increasing": "decreasing", "decreasing": "increasing",
    "inscribed": "circumscribed", "tallest": "shortest", "shortest": "tallest", "longer": "shorter",
    "shorter": "longer", "older": "younger", "younger": "older", "floor": "ceiling", "each": "all",
    "every": "every other", "arithmetic": "geometric", "geometric": "arithmetic", "acute": "obtuse",
    "convex": "concave", "horizontal": "vertical", "row": "column", "rows": "columns", "radius": "diameter",
    "diameter": "radius", "exactly": "at least", "consecutive": "distinct", "divisible": "not divisible",
}  # fmt: skip
_TARGETS = {
    "perimeter": "area", "area": "perimeter", "volume": "surface area", "sum": "product", "product": "sum",
    "remainder": "quotient", "average": "total", "total": "average", "numerator": "denominator", "width": "length",
    "length": "width", "radius": "circumference", "difference": "sum", "median": "mode", "mean": "median",
    "maximum": "minimum", "minimum": "maximum", "number": "probability", "probability": "number",
    "have left": "start with", "in all": "fewer", "altogether": "on average", "left": "at first", "cost": "weigh",
    "earn": "spend", "spend": "earn", "long": "wide", "tall": "wide", "old": "heavy", "largest": "smallest",
    "smallest": "largest", "least": "greatest", "greatest": "least",
}  # fmt: skip
_UNITS = {
    "cm": "m", "meters": "centimeters", "feet": "inches", "inches": "feet", "miles": "kilometers",
    "hours": "minutes", "minutes": "hours", "days": "weeks", "weeks": "days", "months": "years", "years": "months",
    "dollars": "cents", "cents": "dollars", "pounds": "ounces", "kilograms": "grams", "grams": "kilograms",
    "liters": "milliliters", "degrees": "radians", "gallons": "quarts", "seconds": "minutes",
    "units": "square units",
}  # fmt: skip
_OPERATORS = (
    ("\\leq", "<"), ("\\geq", ">"), ("\\le ", "\\ge "), ("\\ge ", "\\le "), ("+", "-"), ("-", "+"), ("=", "\\ne "),
    ("<", ">"), (">", "<"), ("\\cup", "\\cap"), ("\\cap", "\\cup"), ("\\sin", "\\cos"), ("\\cos", "\\sin"),
    ("^2", "^3"), ("^{2}", "^{3}"), ("_1", "_2"), ("_n", "_{n+1}"), ("\\sqrt", "\\sqrt[3]"),
    ("\\lfloor", "\\lceil"), ("\\times", "+"), ("\\cdot", "+"), ("\\subset", "\\supset"), ("!", ""),
    ("\\binom", "\\frac"), ("|", ""), ("/", "*"),
)  # fmt: skip


def _replace_word(text: str, table: dict[str, str], rng: random.Random, start: int = 0) -> str | None:
    places = [
        (found, new)
        for old, new in table.items()
        for found in re.finditer(rf"(?<![\w\\]){re.escape(old)}(?!\w)", text[start:], re.IGNORECASE)
    ]
    if not places:
        return None
    found, new = rng.choice(places)
    if found.group()[:1].isupper():
        new = new[:1].upper() + new[1:]
    return text[: start + found.start()] + new + text[start + found.end() :]


def _number(text: str, rng: random.Random) -> str | None:
    places = list(_NUMBER.finditer(text))
    if not places:
        return _replace_word(text, {w: _WORD_NUMBERS[(i + 1) % 9] for i, w in enumerate(_WORD_NUMBERS)}, rng)
    found = rng.choice(places)
    old = found.group()
    new = old
    while new == old or (not new.lstrip("0") and len(new) > 1):
        digit = rng.randrange(len(old))
        new = old[:digit] + rng.choice("123456789") + old[digit + 1 :] if old[digit].isdigit() else old
    return text[: found.start()] + new + text[found.end() :]


def _negate(text: str, rng: random.Random) -> str | None:
    places = list(re.finditer(r"\b(is|are|was|were|does|do|did|can|will|has|have|would|be)\b(?! not)", text))
    if not places:
        return None
    found = rng.choice(places)
    return text[: found.end()] + " not" + text[found.end() :]


def _sentence_starts(text: str) -> set[int]:
    return {0} | {m.end() for m in re.finditer(r"[.?!]\s+", text)}


def _capitals(text: str) -> list[str]:
    starts = _sentence_starts(text)
    found: list[str] = []
    for m in re.finditer(r"(?<![\w\\$])[A-Z][a-z]{2,}\b", text):
        if (
            (m.start() not in starts or text.count(m.group()) > 1)
            and m.group() not in found
            and m.group() not in _NOT_NAMES
        ):
            found.append(m.group())
    return found


_NOT_NAMES = frozenset(
    [
        "How",
        "What",
        "Find",
        "The",
        "If",
        "Let",
        "Each",
        "There",
        "When",
        "Which",
        "Given",
        "Suppose",
        "For",
        "She",
        "They",
        "His",
        "Her",
        "Its",
        "And",
        "But",
    ]
)


def _swap_roles(text: str, rng: random.Random) -> str | None:
    """Two names, two variables or two numbers in one sentence change places; elsewhere they stay."""
    names = _capitals(text)
    sentences = re.split(r"(?<=[.?!])\s+", text)
    rng.shuffle(names)
    for sentence in sentences:
        inside = [n for n in names if re.search(rf"\b{n}\b", sentence)]
        if len(inside) >= 2:
            return text.replace(sentence, _exchange(sentence, inside[0], inside[1]), 1)
    numbers = sorted({m.group() for m in _NUMBER.finditer(text)})
    if len(numbers) >= 2:
        a, b = rng.sample(numbers, 2)
        return _NUMBER.sub(lambda m: b if m.group() == a else a if m.group() == b else m.group(), text)
    return None


def _exchange(text: str, a: str, b: str) -> str:
    return re.sub(rf"\b(?:{a}|{b})\b", lambda m: b if m.group() == a else a, text)


def _target(text: str, rng: random.Random) -> str | None:
    asked = max(text.rfind(". "), text.rfind("? "), text.rfind("! "), 0)
    changed = _replace_word(text, _TARGETS, rng, asked)
    if changed is not None:
        return changed
    if "?" in text[asked:]:
        nouns = re.search(r"[Hh]ow many (\w+)", text[asked:])
        others: list[str] = [
            w for w in re.findall(r"\b\d+ ([a-z]{3,}s)\b", text) if nouns is None or w != nouns.group(1)
        ]
        if nouns is not None and others:
            place = asked + nouns.start(1)
            return text[:place] + rng.choice(others) + text[place + len(nouns.group(1)) :]
    return None


def _qualifier(text: str, rng: random.Random) -> str | None:
    return _replace_word(text, _SWAPS, rng)


def _unit(text: str, rng: random.Random) -> str | None:
    return _replace_word(text, _UNITS, rng)


def _operator(text: str, rng: random.Random) -> str | None:
    """Only inside of formulas: a sign in running text may be a hyphen."""
    formulas = [m.span() for m in re.finditer(r"\$[^$]+\$|\\\([^$]*?\\\)|\\\[.*?\\\]", text, re.DOTALL)]
    places = []
    for first, last in formulas:
        inner = text[first:last]
        for old, new in _OPERATORS:
            place = inner.find(old, 1)
            if 0 < place < len(inner) - 1 and not (old.isalpha() and inner[place - 1] == "\\"):
                places.append((first + place, old, new))
    if not places:
        return None
    place, old, new = rng.choice(places)
    if new.isalpha() or (new.startswith("\\") and text[place + len(old) : place + len(old) + 1].isalpha()):
        new += " "
    return text[:place] + new + text[place + len(old) :]


def _drop(text: str, rng: random.Random) -> str | None:
    """Leaves out one sentence that holds a number and is not the question."""
    sentences = re.split(r"(?<=[.?!])\s+", text)
    holders = [s for s in sentences[:-1] if _NUMBER.search(s) or "$" in s]
    if len(sentences) < 2 or not holders:
        return None
    gone = rng.choice(holders)
    return " ".join(s for s in sentences if s is not gone)


def _add(text: str, rng: random.Random) -> str | None:
    sentences = re.split(r"(?<=[.?!])\s+", text)
    extra = rng.choice(
        (
            f"There are also {rng.randrange(2, 60)} others nearby.",
            "However, half of them are broken.",
            "Afterwards one of them is given away.",
            "No two of them are equal.",
        )
    )
    place = rng.randrange(max(1, len(sentences) - 1)) + (1 if len(sentences) > 1 else 0)
    return " ".join([*sentences[:place], extra, *sentences[place:]])


def _rename(text: str, rng: random.Random) -> str | None:
    names = _capitals(text)
    if not names:
        return None
    old = rng.choice(names)
    new = rng.choice([n for n in ("Ingrid", "Rasmus", "Tobias", "Yolanda", "Quentin") if n != old])
    return re.sub(rf"\b{old}\b", new, text)


_REPHRASINGS = (
    (r"\bin all\b", "altogether"), (r"\baltogether\b", "in total"), (r"\bin total\b", "altogether"),
    (r"\bbought\b", "purchased"), (r"\bbuys\b", "purchases"), (r"\bkids\b", "children"), (r"\bbicycle\b", "bike"),
    (r"^Find\b", "Determine"), (r"\. Find\b", ". Compute"), (r"\bdoesn't\b", "does not"), (r"\bdoes not\b", "doesn't"),
    (r"\b2\b(?! *[\\^_=+*/-])", "two"), (r"\b3\b(?! *[\\^_=+*/-])", "three"), (r"\btwo\b", "2"), (r"\bthree\b", "3"),
)  # fmt: skip


def _rephrase(text: str, rng: random.Random) -> str | None:
    """A synonym, a contraction or a number in words, outside of formulas."""
    parts = re.split(r"(\$[^$]*\$|\\\(.*?\\\)|\\\[.*?\\\])", text)
    options = [
        (k, pattern, new)
        for k in range(0, len(parts), 2)
        for pattern, new in _REPHRASINGS
        if re.search(pattern, parts[k]) and not re.search(rf"[$\d.]\s*{pattern}", parts[k])
    ]
    if not options:
        return None
    k, pattern, new = rng.choice(options)
    parts[k] = re.sub(pattern, new, parts[k], count=1)
    return "".join(parts)


def _format(text: str, rng: random.Random) -> str | None:
    """The same text as another site prints it."""
    changes: list[Callable[[str], str]] = [
        lambda t: (
            re.sub(r"(?<!\\)\$([^$]+)(?<!\\)\$", r"\\(\1\\)", t) if "\\$" not in t and t.count("$") % 2 == 0 else t
        ),
        lambda t: t.replace("\\frac", "\\dfrac"),
        lambda t: re.sub(r"\\(le|ge)(?![a-z])", r"\\\1q", t),
        lambda t: re.sub(r"(?<=[\w)])([.,?])(?=\s|$)", r" \1", t),
        lambda t: t.replace("'", "’"),
        lambda t: (
            re.sub(r"(?<![\d.,$\\])(\d{1,3})(\d{3})(?![\d.,])", r"\1,\2", t) if "\\" not in t and "$" not in t else t
        ),
        lambda t: re.sub(r" +", "  ", t),
        lambda t: re.sub(r"(?<=\. )", "\n", t),
    ]
    rng.shuffle(changes)
    for change in changes:
        changed = change(text)
        if changed != text:
            return changed
    return None


_MAKERS: dict[str, Callable[[str, random.Random], str | None]] = {
    "number": _number, "negate": _negate, "swap_roles": _swap_roles, "target": _target, "qualifier": _qualifier,
    "operator": _operator, "unit": _unit, "drop": _drop, "add": _add, "rename": _rename, "rephrase": _rephrase,
    "format": _format,
}  # fmt: skip
