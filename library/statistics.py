"""The dashboard's numbers, from the rows. Knows SQL and counts; draws nothing and judges nothing."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import combinations

from library.search import Index


@dataclass(frozen=True)
class Day:
    """One UTC day's asks. `wrong` counts grafts whose replayed answer was flagged."""

    date: str
    asks: int
    grafts: int
    transfers: int
    refusals: int
    wrong: int
    tokens_saved: int
    seconds_saved: float


@dataclass(frozen=True)
class Reviewer:
    name: str
    approved: int
    rejected: int


@dataclass(frozen=True)
class ReviewDay:
    """One UTC day's decisions; `reviewers` is how many people decided."""

    date: str
    approved: int
    rejected: int
    flagged: int
    reviewers: int


@dataclass(frozen=True)
class Agreement:
    """How two reviewers judged the attempts that both gave a word on; words taken back do not count."""

    one: str
    other: str
    agreed: int
    disagreed: int


@dataclass(frozen=True)
class Statistics:
    """All counts are over [since, until) except the artifacts and their bytes, which are as of now.

    `joules` is None if no ask in the range was metered. `artifacts`, `exactness` and `verdicts` are (name, count).
    """

    since: str
    until: str
    artifacts: tuple[tuple[str, int], ...]
    stored_bytes: int
    asks: int
    grafts: int
    transfers: int
    refusals: int
    wrong: int
    decode_tokens: int
    prefill_tokens: int
    tokens_saved: int
    seconds_saved: float
    seconds: float
    joules: float | None
    flops: int
    exactness: tuple[tuple[str, int], ...]
    reviewers: tuple[Reviewer, ...]
    attempts: int
    solve_tokens: int
    days: tuple[Day, ...]
    review_days: tuple[ReviewDay, ...] = ()
    agreements: tuple[Agreement, ...] = ()

    @property
    def agreement(self) -> float | None:
        """Share of the pairs of words on one attempt that say the same; None where nothing was judged twice."""
        agreed = sum(pair.agreed for pair in self.agreements)
        both = agreed + sum(pair.disagreed for pair in self.agreements)
        return agreed / both if both else None

    @property
    def hit_rate(self) -> float | None:
        """Share of asks answered by a graft; None without asks."""
        return self.grafts / self.asks if self.asks else None


_VERDICTS = """count(*), coalesce(sum(verdict = 'GRAFT'), 0), coalesce(sum(verdict = 'TRANSFER'), 0),
    coalesce(sum(verdict = 'REFUSE'), 0), coalesce(sum(verdict = 'GRAFT' AND flagged), 0)"""
_RANGE = "created >= ? AND created < ?"


def statistics(index: Index, since: str = "", until: str = "9999") -> Statistics:
    """Reads the numbers for outcomes, attempts and decisions in [since, until), as RFC 3339 text. Does not lock."""
    span = (since, until)
    artifacts = index.query("SELECT state, count(*) FROM artifact GROUP BY state ORDER BY state")
    stored = index.query(
        "SELECT coalesce(sum(stored_bytes), 0) FROM artifact WHERE state NOT IN ('evicted', 'quarantined')"
    )
    (totals,) = index.query(
        f"""SELECT {_VERDICTS}, coalesce(sum(decode_tokens), 0), coalesce(sum(prefill_tokens), 0),
            coalesce(sum(tokens_saved), 0), coalesce(sum(seconds_saved), 0.0), coalesce(sum(seconds), 0.0),
            sum(joules), coalesce(sum(flops), 0) FROM outcome WHERE {_RANGE}""",
        span,
    )
    exactness = index.query(
        f"SELECT exactness, count(*) FROM outcome WHERE {_RANGE} AND verdict = 'GRAFT' GROUP BY exactness ORDER BY 1",
        span,
    )
    reviewers = index.query(
        f"""SELECT reviewer, sum(action = 'approve'), sum(action = 'reject') FROM decision
            WHERE {_RANGE} AND action IN ('approve', 'reject') GROUP BY reviewer ORDER BY reviewer""",
        span,
    )
    (solved,) = index.query(
        f"SELECT count(*), coalesce(sum(decode_tokens), 0) FROM attempt WHERE {_RANGE}",
        span,
    )
    days = index.query(
        f"""SELECT substr(created, 1, 10), {_VERDICTS}, sum(tokens_saved), sum(seconds_saved)
            FROM outcome WHERE {_RANGE} GROUP BY 1 ORDER BY 1""",
        span,
    )
    reviewed = index.query(
        f"""SELECT substr(created, 1, 10), sum(action = 'approve'), sum(action = 'reject'), sum(action = 'flag'),
            count(DISTINCT reviewer) FROM decision WHERE {_RANGE} AND action IN ('approve', 'reject', 'flag')
            GROUP BY 1 ORDER BY 1""",
        span,
    )
    asks, grafts, transfers, refusals, wrong, decoded, prefilled, saved, seconds_saved, seconds, joules, flops = totals
    return Statistics(
        since=since,
        until=until,
        artifacts=tuple((state, count) for state, count in artifacts),
        stored_bytes=stored[0][0],
        asks=asks,
        grafts=grafts,
        transfers=transfers,
        refusals=refusals,
        wrong=wrong,
        decode_tokens=decoded,
        prefill_tokens=prefilled,
        tokens_saved=saved,
        seconds_saved=seconds_saved,
        seconds=seconds,
        joules=joules,
        flops=flops,
        exactness=tuple((name, count) for name, count in exactness),
        reviewers=tuple(Reviewer(*row) for row in reviewers),
        attempts=solved[0],
        solve_tokens=solved[1],
        days=tuple(Day(*row) for row in days),
        review_days=tuple(ReviewDay(*row) for row in reviewed),
        agreements=_agreements(index, span),
    )


def _agreements(index: Index, span: tuple[str, str]) -> tuple[Agreement, ...]:
    words: dict[str, dict[str, str]] = defaultdict(dict)
    for attempt, reviewer, action in index.query(
        f"""SELECT attempt_id, reviewer, action FROM decision WHERE {_RANGE}
            AND action IN ('approve', 'reject', 'undo') ORDER BY created, id""",
        span,
    ):
        if action == "undo":
            words[attempt].pop(reviewer, None)
        else:
            words[attempt][reviewer] = action
    counts: Counter[tuple[str, str, bool]] = Counter()
    for said in words.values():
        for one, other in combinations(sorted(said), 2):
            counts[one, other, said[one] == said[other]] += 1
    pairs = sorted({(one, other) for one, other, _ in counts})
    return tuple(Agreement(*pair, counts[*pair, True], counts[*pair, False]) for pair in pairs)
