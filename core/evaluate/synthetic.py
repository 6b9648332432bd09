"""Many synthetic records in a library, for measuring what its size costs: rows without blobs, texts of three kinds.

A third of the texts come from few templates with few names and numbers (each word is in very many of them), a
third from templates with many names and things, a third are words drawn by Zipf's law.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from library.digest import digest_bytes, digest_json
from library.search import COLUMNS
from library.sqlite import DATABASE, connect

IDENTITY = "blake3:" + "1" * 64
ENVIRONMENT = "blake3:" + "2" * 64

_SYLLABLES = re.findall(
    r"\w+", "ba be bi bo da de di do fa fe ka ke ki ko la le li lo ma me mi mo na ne ni no ra re ri ro sa se ta te"
)
_FEW_NAMES = re.findall(r"\w+", "Ann Ben Carla Dan Eva Finn Gina Hugo Ida Jose Kim Linda Max Nora Otto Paula")
_FEW_THINGS = re.findall(
    r"\w+", "apples cards marbles oranges pencils skittles stickers peanuts eggs books coins shells"
)
_VERBS = re.findall(r"\w+", "buys finds loses sells gives eats paints borrows")


def word(number: int) -> str:
    """A pronounceable word for a number, each number another one."""
    parts = []
    while True:
        number, digit = divmod(number, len(_SYLLABLES))
        parts.append(_SYLLABLES[digit])
        if number == 0:
            return "".join(parts) + "x"


def texts(count: int, seed: int = 0) -> Iterator[str]:
    draw = random.Random(seed)
    for number in range(count):
        a, b, c = draw.randint(2, 99), draw.randint(2, 99), draw.randint(2, 9)
        if number % 3 == 0:
            name, thing, verb = draw.choice(_FEW_NAMES), draw.choice(_FEW_THINGS), draw.choice(_VERBS)
            yield f"{name} has {a} {thing}. {name} {verb} {b} more {thing} each day for {c} days. How many are there?"
        elif number % 3 == 1:
            name, thing = word(draw.randrange(20_000)).title(), word(draw.randrange(20_000)) + "s"
            yield (
                f"{name} {draw.choice(_VERBS)} {a * b} {thing} and puts {b} of the {thing} into each of {c} boxes. "
                f"Then {word(draw.randrange(20_000)).title()} takes {a} away. How many {thing} are left?"
            )
        else:
            words = (word(min(int(draw.paretovariate(0.8)), 200_000)) for _ in range(30))
            yield f"Given {' '.join(words)}, what is {a} + {b}?"


def key_of(text: str) -> str:
    """The key under which `fill` keeps a text: not the gate's, which costs more to make than the row."""
    return str(digest_json(text))


def fill(
    root: Path, count: int, seed: int = 0, start: int = 0, identity: str = IDENTITY, environment: str = ENVIRONMENT
) -> None:
    """Adds `count` published records to the library at `root`, past the facade and without audit entries."""
    values = {
        "kind": "solution", "state": "published", "state_reason": "", "state_since": "", "attempt_id": None,
        "canonical_version": 1, "answer": "42", "model": "test-model", "identity": identity,
        "environment": environment, "verifier": "check 1", "reviewer": "ada", "size_bytes": 1000,
        "stored_bytes": 1000, "compression": "none", "graft_point": 50, "solve_seconds": 1.0, "solve_flops": 0,
        "solve_joules": None, "pinned": 0, "uses": 0, "last_used": None, "parent": None, "origin": "local",
    }  # fmt: skip

    def rows() -> Iterator[tuple[object, ...]]:
        for number, text in enumerate(texts(count, seed), start=start):
            row = values | {
                "digest": str(digest_bytes(f"{seed} {number}".encode())),
                "problem_text": text,
                "canonical_key": key_of(text),
                "solve_tokens": number % 997,
                "created": f"2026-01-01T00:00:00.{number:09d}Z",
            }
            yield tuple(row[name] for name in COLUMNS)

    marks = ", ".join("?" * len(COLUMNS))
    with closing(connect(root / DATABASE)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(f"INSERT INTO artifact ({', '.join(COLUMNS)}) VALUES ({marks})", rows())
        connection.execute("COMMIT")
