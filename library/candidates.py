"""Finding problems that resemble a query, in bounded time however many there are. Proposes; never decides.

The index can rank by BM25 only what it has walked through, and common words lead through most of the library. So
the pool comes from the query's rare words; where all are common (templated texts), from the texts that share its
least common words together, all but one or two. The pool, about `POOL` texts, is then ordered by the weight of the
words shared.
"""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any

Query = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]

_WORD = re.compile(r"[^\W_]+")
MAX_TERMS = 12  # words that a ranked search looks for
MAX_PROBES = 32  # words whose frequency is looked up
COMMON = 2000  # a word in this many problems or more is common
COUNTED = 20_000  # frequencies are counted up to here
TOGETHER = 6  # least common words that are looked for together
BUDGET = 4000  # rows that a ranked search may walk through, about 3 microseconds each
POOL = 96  # texts that are compared word by word
SECONDS = 0.02  # after this no further relaxed search is begun


def tokens(text: str) -> list[str]:
    """The distinct words of a text in order, lower case; letters and digits only, so safe inside a quoted term."""
    return [word for word in dict.fromkeys(_WORD.findall(text.lower())) if len(word) <= 64]


def best(query: Query, text: str, k: int, identity: str | None, known: dict[str, int]) -> list[tuple[int, float]]:
    """Row ids in `artifact` of the `k` published solutions most like `text`, with scores in [0, 1], best first.

    `query(sql, parameters)` runs a read-only statement. Equal scores: the newer record first.
    `known` is the caller's memory of common words' frequencies, which this adds to.
    """
    wanted = _WORD.findall(text.lower())
    words = tokens(text)
    if not words or k < 1:
        return []
    # Digits and long words tell more than short ones; a long text has enough of them.
    probed = sorted(words, key=lambda word: (not word.isdigit(), -len(word)))[:MAX_PROBES]
    frequency = {word: _frequency(query, word, known) for word in probed}
    present = [word for word in words if frequency.get(word, 0) > 0]
    if not present:
        return []
    total = max(2, int(query("SELECT coalesce(max(docid), 0) FROM problemdoc", ())[0][0]))
    weight = {word: math.log(1 + total / max(1, count)) for word, count in frequency.items()}
    pool: dict[int, str] = {}
    for found in _searches(query, present, frequency):
        pool.update(_texts(query, found, identity))
        if len(pool) >= POOL:
            break
    scored = [(_likeness(wanted, other, weight), row) for row, other in pool.items()]
    return [(row, score) for score, row in sorted(scored, reverse=True)[:k]]


def _frequency(query: Query, word: str, known: dict[str, int]) -> int:
    """In how many problems the word is, counted up to `COUNTED`. A common word stays common: it is remembered."""
    if word in known:
        return known[word]
    sql = f"SELECT count(*) FROM (SELECT 1 FROM problemindex WHERE problemindex MATCH ? LIMIT {COUNTED})"
    count = int(query(sql, (f'"{word}"',))[0][0])
    if count >= COMMON and len(known) < 10_000:
        known[word] = count
    return count


def _searches(query: Query, present: list[str], frequency: dict[str, int]) -> Iterator[list[int]]:
    """Document ids, a search at a time, while they are worth their time."""
    start = time.perf_counter()
    ordered = sorted(present, key=lambda word: (frequency[word], not word.isdigit(), -len(word)))
    core = ordered[:TOGETHER]
    together = "SELECT rowid FROM problemindex WHERE problemindex MATCH ? LIMIT ?"
    found = [row[0] for row in query(together, (_all_of(core), POOL // 4))]
    yield found
    if len(found) == POOL // 4 and len(ordered) > TOGETHER:  # too many have these: ask for more of the words
        yield [row[0] for row in query(together, (_all_of(ordered[: 2 * TOGETHER]), POOL // 4))]
    rare, rows = [], 0
    for word in ordered[:MAX_TERMS]:
        rows += frequency[word]
        if frequency[word] >= COMMON or rows > BUDGET:
            break
        rare.append(word)
    if rare:
        ranked = "SELECT rowid FROM problemindex WHERE problemindex MATCH ? ORDER BY bm25(problemindex) LIMIT ?"
        yield [row[0] for row in query(ranked, (" OR ".join(f'"{word}"' for word in rare), POOL))]
    for missing in range(1, min(3, len(core) - 1)):
        for left_out in combinations(core, missing):
            if time.perf_counter() - start > SECONDS:
                return
            kept = [word for word in core if word not in left_out]
            yield [row[0] for row in query(together, (_all_of(kept), POOL // 4))]


def _all_of(words: list[str]) -> str:
    return " AND ".join(f'"{word}"' for word in words)


def _texts(query: Query, documents: list[int], identity: str | None) -> list[tuple[int, str]]:
    if not documents:
        return []
    sql = f"""SELECT artifact.rowid, problem_text FROM problemdoc JOIN artifact USING (digest)
        WHERE docid IN ({", ".join("?" * len(documents))}) AND +state = 'published'"""
    parameters: list[Any] = list(documents)
    if identity is not None:
        sql += " AND identity = ?"
        parameters.append(identity)
    return [(row[0], row[1]) for row in query(sql, parameters)]


def _likeness(wanted: list[str], text: str, weight: dict[str, float]) -> float:
    """Weight of the words in both texts over the weight of those in either, counted with repetition."""
    ours, theirs = Counter(wanted), Counter(_WORD.findall(text.lower()))
    shared = sum(weight.get(word, 1.0) * count for word, count in (ours & theirs).items())
    either = sum(weight.get(word, 1.0) * count for word, count in (ours | theirs).items())
    return shared / either if either else 0.0
