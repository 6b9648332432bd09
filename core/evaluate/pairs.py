"""Pairs of problems with a known answer to "same problem?": read from a file, or made here for users without data.

Made pairs are deterministic by seed. Knows nothing of the gate that is tested with them.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.evaluate.mutate import KINDS, mutate
from core.evaluate.templates import TEMPLATES, Template
from library.errors import FormatError, NotFound


@dataclass(frozen=True)
class Pair:
    """One row of a pair file; empty texts where the row lacks them. `malformed` says what is wrong with a row."""

    index: int
    base: str
    variant: str
    kind: str = ""
    dataset: str = ""
    role: str = ""
    base_id: str = ""
    base_answer: str = ""
    variant_answer: str = ""
    malformed: str = ""


def read_pairs(path: Path) -> Iterator[Pair]:
    """Rows of a JSON-lines file in order, one for every line, malformed ones too. Raises `NotFound`, `FormatError`."""
    try:
        stream = path.open("rb")
    except OSError as error:
        raise NotFound(f"cannot read the pairs file {path}: {error.strerror}") from error
    with stream:
        for index, line in enumerate(stream):
            if index == 0 and line.startswith(b"PK"):
                raise FormatError(f"{path} is not a file of JSON lines")
            yield _pair(index, line)


def _pair(index: int, line: bytes) -> Pair:
    try:
        row: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        return Pair(index, "", "", malformed=f"the line is not JSON: {str(error)[:80]}")
    if not isinstance(row, dict):
        return Pair(index, "", "", malformed="the line is not a JSON object")
    base, variant = row.get("base_question"), row.get("variant_question")
    if not isinstance(base, str) or not isinstance(variant, str):
        return Pair(index, "", "", malformed="base_question or variant_question is missing or not text")
    text = {
        name: value if isinstance(value := row.get(name), str) else ("" if value is None else str(value))
        for name in ("kind", "dataset", "role", "base_id", "base_answer", "variant_answer")
    }
    return Pair(index, base, variant, **text)


def generate_pairs(count: int, seed: int = 0) -> list[dict[str, str]]:
    """`count` rows in the format of a pairs file, from small templates: recurrences in another typesetting or wording
    (role positive) and near-misses with another number, target or role (role negative). Same seed, same rows."""
    rng = random.Random(seed)
    rows: list[dict[str, str]] = []
    kinds = ("numeric", "rephrase", "format", "target", "swap_roles", "qualifier")
    place = 0
    while len(rows) < count:
        kind = kinds[place % len(kinds)]
        template = TEMPLATES[rng.randrange(len(TEMPLATES))]
        place += 1
        row = _made(template, kind, rng, len(rows))
        if row is not None:
            rows.append(row)
    return rows


def _made(template: Template, kind: str, rng: random.Random, index: int) -> dict[str, str] | None:
    values = template.draw(rng)
    base, answer = template.text(values), template.answer(values)
    if kind == "numeric":
        other = template.draw(rng)
        if template.answer(other) == answer:
            return None
        variant, new_answer = template.text(other), template.answer(other)
    else:
        changed = mutate(base, kind, rng.randrange(1 << 30))
        if changed is None:
            return None
        variant, new_answer = changed, answer if KINDS[kind] else ""
    same = kind in KINDS and KINDS[kind]
    return {
        "base_id": f"made-{index}",
        "base_question": base,
        "base_answer": answer,
        "variant_question": variant,
        "variant_answer": new_answer,
        "kind": kind,
        "role": "positive" if same else "negative",
        "dataset": "made",
    }


__all__ = ["KINDS", "Pair", "generate_pairs", "mutate", "read_pairs"]
