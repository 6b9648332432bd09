"""Pairs made from problems of one operation, for users who have problems but no pairs: labels come by arithmetic.

A problem counts if it shows exactly two whole numbers and exactly one of + - * / gives its answer. Other numbers in the
same text are then a near-miss with a known answer; another typesetting or wording is a restatement. Knows no gate.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator

from core.evaluate.pairs import Pair, mutate
from core.evaluate.report import Problem

NEAR_MISSES = 3  # a problem, each with other numbers
_NUMBER = re.compile(r"(?<![\w.,/])\d+(?![\w/]|[.,]\d)")
_OPERATIONS: tuple[Callable[[int, int], int | None], ...] = (
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: b - a,
    lambda a, b: a * b,
    lambda a, b: a // b if b and a % b == 0 else None,
    lambda a, b: b // a if a and b % a == 0 else None,
)


def pairs_of(problems: Iterable[Problem], seed: int = 0) -> Iterator[Pair]:
    """Near-misses and restatements of each problem that counts, in order. Deterministic by seed and problem."""
    index = 0
    for problem in problems:
        for kind, role, text, answer in _variants(problem, random.Random(f"{seed}:{problem.id}")):
            yield Pair(index, problem.question, text, kind, "made", role, problem.id, problem.answer, answer)
            index += 1


def _variants(problem: Problem, rng: random.Random) -> Iterator[tuple[str, str, str, str]]:
    operation = only_operation(problem)
    if operation is None:
        return
    found = list(_NUMBER.finditer(problem.question))
    old = int(found[0].group()), int(found[1].group())
    seen = {int(problem.answer)}
    for _ in range(200):
        if len(seen) > NEAR_MISSES:
            break
        new = _near(old[0], rng), _near(old[1], rng)
        value = operation(*new)
        if value is None or value <= 0 or value in seen:
            continue
        seen.add(value)
        kind = "one_number" if old[0] == new[0] or old[1] == new[1] else "both_numbers"
        yield kind, "negative", _put(problem.question, found, new), str(value)
    for kind in ("format", "rephrase"):
        text = mutate(problem.question, kind, rng.randrange(1 << 30))
        if text is not None:
            yield kind, "positive", text, problem.answer


def only_operation(problem: Problem) -> Callable[[int, int], int | None] | None:
    """The one operation that makes the problem's two numbers its answer, or None."""
    numbers = [int(found.group()) for found in _NUMBER.finditer(problem.question)]
    if len(numbers) != 2 or not re.fullmatch(r"\d+", problem.answer.strip()):
        return None
    fitting = [operation for operation in _OPERATIONS if operation(*numbers) == int(problem.answer)]
    return fitting[0] if len(fitting) == 1 else None


def _near(number: int, rng: random.Random) -> int:
    """The number itself one time in three, else one of the same size."""
    return number if rng.randrange(3) == 0 else rng.randint(2, max(9, 2 * number))


def _put(text: str, found: list[re.Match[str]], new: tuple[int, int]) -> str:
    first, second = found
    middle = text[first.end() : second.start()]
    return f"{text[: first.start()]}{new[0]}{middle}{new[1]}{text[second.end() :]}"
