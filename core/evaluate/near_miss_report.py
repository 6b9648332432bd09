"""Counts the near-miss experiment's rows: wrong answers, copied answers and tokens of each arm, with intervals.

Plain data in and out; needs no model. A wrong answer is one that the pair's label contradicts; a copied one is the
stored answer given to a near-miss, whose own answer is another by its label.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.evaluate.report import Bars, Share, markdown, share, write_bars

Row = Mapping[str, Any]
ARMS = ("fresh", "replay", "asked", "gated", "text_prefix")
TITLES = {
    "fresh": "fresh",
    "replay": "ungated graft, replay",
    "asked": "ungated graft, asked",
    "gated": "gated graft",
    "text_prefix": "solution as text prefix",
    "answer_cache": "answer cache",
}
CACHE_THRESHOLD = 0.8  # cosine from which the plain answer cache serves the stored answer
THRESHOLDS = (0.7, 0.8, 0.9, 0.95)


@dataclass(frozen=True)
class ArmCount:
    """One arm over one group of variants. `wrong` is over those whose right answer the file says."""

    arm: str
    n: int
    wrong: Share
    copied: Share
    tokens: float
    prefill: float

    def to_json(self) -> dict[str, Any]:
        return {
            "arm": self.arm,
            "n": self.n,
            "wrong": self.wrong.to_json(),
            "copied": self.copied.to_json(),
            "decode_tokens_mean": self.tokens,
            "prefill_tokens_mean": self.prefill,
        }


def arm_of(row: Row, arm: str, threshold: float = CACHE_THRESHOLD) -> Mapping[str, Any]:
    """A row's result in an arm; the answer cache's is the stored answer at no tokens, or the fresh run."""
    if arm != "answer_cache":
        found: Mapping[str, Any] = row["arms"][arm]
        return found
    if row["similarity"] >= threshold:
        return {**row["arms"]["replay"], "answer": row["stored"], "stored_answer": True, "tokens": 0, "prefill": 0}
    kept: Mapping[str, Any] = row["arms"]["fresh"]
    return kept


def count_arm(rows: Sequence[Row], arm: str, threshold: float = CACHE_THRESHOLD) -> ArmCount:
    """Counts of one arm. The copied share is over near-misses only: to a restatement the stored answer is right."""
    found = [arm_of(row, arm, threshold) for row in rows]
    judged = [one["right"] for one in found if one["right"] is not None]
    misses = [one["stored_answer"] for one, row in zip(found, rows, strict=True) if row["role"] == "negative"]
    n = len(rows)
    return ArmCount(
        arm,
        n,
        share(sum(not right for right in judged), len(judged)),
        share(sum(misses), len(misses)),
        sum(one["tokens"] for one in found) / n if n else 0.0,
        sum(one["prefill"] for one in found) / n if n else 0.0,
    )


def report(bases: Sequence[Row], variants: Sequence[Row], about: Mapping[str, Any]) -> dict[str, Any]:
    """The whole report as JSON. `about` says what was run: model, machine, settings, weights digests."""
    misses = [row for row in variants if row["role"] == "negative"]
    same = [row for row in variants if row["role"] == "positive"]
    return {
        "experiment": "near-miss",
        **about,
        "bases": len(bases),
        "bases_solved": sum(row["artifact"] is not None for row in bases),
        "not_solved": dict(Counter(row["why"] for row in bases if row["artifact"] is None)),
        "n": len(variants),
        "near_misses": _group(misses),
        "near_misses_by_kind": {kind: _group(rows) for kind, rows in _by(misses, "kind").items()},
        "restatements": _group(same),
        "restatements_by_kind": {kind: _group(rows) for kind, rows in _by(same, "kind").items()},
        "gate": {"near_misses": _gate(misses), "restatements": _gate(same)},
        "answer_cache": [
            {
                "threshold": threshold,
                "near_misses": count_arm(misses, "answer_cache", threshold).to_json(),
                "restatements": count_arm(same, "answer_cache", threshold).to_json(),
            }
            for threshold in THRESHOLDS
        ],
        "variants": [dict(row) for row in variants],
    }


def _group(rows: Sequence[Row]) -> dict[str, Any]:
    return {"n": len(rows), "arms": [count_arm(rows, arm).to_json() for arm in (*ARMS, "answer_cache")]}


def _by(rows: Sequence[Row], name: str) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row[name], []).append(row)
    return dict(sorted(groups.items()))


def _gate(rows: Sequence[Row]) -> dict[str, Any]:
    """What the gate said, and what came of it. Only GRAFT is served as truth; a TRANSFER is marked unverified."""
    found: dict[str, Any] = {"n": len(rows)}
    for verdict in ("GRAFT", "TRANSFER", "REFUSE"):
        mine = [row for row in rows if row["verdict"] == verdict]
        found[verdict.lower()] = {"share": share(len(mine), len(rows)).to_json(), **count_arm(mine, "gated").to_json()}
    served = sum(row["verdict"] == "GRAFT" and row["arms"]["gated"]["right"] is False for row in rows)
    found["wrong_served_as_truth"] = share(served, len(rows)).to_json()
    return found


def tables(variants: Sequence[Row]) -> str:
    """The report in words: markdown tables of near-misses, their kinds, and restatements."""
    misses = [row for row in variants if row["role"] == "negative"]
    same = [row for row in variants if row["role"] == "positive"]
    parts = []
    for title, rows in (("Near-misses", misses), ("Restatements", same)):
        parts += [f"{title} ({len(rows)})", "", _arms_table(rows), "", _gate_words(rows), ""]
    heads = ("kind", "n", *(f"{TITLES[arm]}: wrong" for arm in ("fresh", "replay", "asked", "gated")), "gate")
    parts += [markdown(heads, [_kind_row(*item) for role in (misses, same) for item in _by(role, "kind").items()])]
    return "\n".join(parts)


def _arms_table(rows: Sequence[Row]) -> str:
    lines = []
    for arm in (*ARMS, "answer_cache"):
        counts = count_arm(rows, arm)
        lines.append((TITLES[arm], counts.wrong.words(), counts.copied.words(), f"{counts.tokens:.1f}",
                      f"{counts.prefill:.0f}"))  # fmt: skip
    return markdown(("arm", "wrong", "stored answer copied", "tokens decoded", "prefilled"), lines)


def _gate_words(rows: Sequence[Row]) -> str:
    verdicts = Counter(row["verdict"] for row in rows)
    told = ", ".join(f"{verdict} {verdicts[verdict]}" for verdict in ("GRAFT", "TRANSFER", "REFUSE"))
    wrong = sum(row["verdict"] == "GRAFT" and row["arms"]["gated"]["right"] is False for row in rows)
    return f"Gate: {told}. Wrong answers served as truth: {share(wrong, len(rows)).words()}."


def _kind_row(kind: str, rows: Sequence[Row]) -> tuple[str, ...]:
    wrong: Callable[[str], str] = lambda arm: _short(count_arm(rows, arm).wrong)  # noqa: E731
    verdicts = Counter(row["verdict"] for row in rows)
    told = " / ".join(str(verdicts[verdict]) for verdict in ("GRAFT", "TRANSFER", "REFUSE"))
    return (kind, str(len(rows)), wrong("fresh"), wrong("replay"), wrong("asked"), wrong("gated"), told)


def _short(found: Share) -> str:
    return f"{found.hits}/{found.n}"


def write_figures(folder: Path, variants: Sequence[Row], title: str) -> list[Path]:
    """Wrong and copied shares by arm, and wrong shares by kind, as standalone HTML."""
    misses = [row for row in variants if row["role"] == "negative"]
    same = [row for row in variants if row["role"] == "positive"]
    arms = (*ARMS, "answer_cache")
    labels = tuple(TITLES[arm] for arm in arms)
    overall = Bars(
        f"{title}: {len(misses)} near-misses, {len(same)} restatements",
        labels,
        (
            ("near-misses: wrong", tuple(count_arm(misses, arm).wrong for arm in arms)),
            ("near-misses: stored answer copied", tuple(count_arm(misses, arm).copied for arm in arms)),
            ("restatements: wrong", tuple(count_arm(same, arm).wrong for arm in arms)),
        ),
    )
    kinds = _by(misses, "kind")
    by_kind = Bars(
        f"{title}: wrong answers to near-misses by kind",
        tuple(f"{kind} ({len(rows)})" for kind, rows in kinds.items()),
        tuple((TITLES[arm], tuple(count_arm(rows, arm).wrong for rows in kinds.values())) for arm in arms),
    )
    return [write_bars(folder, "near-miss", overall), write_bars(folder, "near-miss-by-kind", by_kind)]
