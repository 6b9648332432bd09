"""Measures the gate on labelled pairs: false accepts and coverage with exact bounds. Needs no model and no torch."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from core.evaluate.pairs import Pair, read_pairs
from core.evaluate.stats import clopper_pearson
from core.gate import Calibration, Judgement, Policy, Reason, Verdict, judge
from library.errors import NotWritable

# Noisy labels (about one positive in ten is wrong): told apart, never part of a pass or fail figure.
NOISY_DATASETS = frozenset({"paramawps"})
MAX_ERRORS_SHOWN = 200


@dataclass(frozen=True)
class Row:
    """Counts of one kind of one dataset under one role. `low` and `high` bound the share of GRAFT (exact, 95 %)."""

    role: str
    dataset: str
    kind: str
    pairs: int
    graft: int
    transfer: int
    refuse: int
    low: float
    high: float


@dataclass(frozen=True)
class Share:
    """`hits` of `pairs`, with the exact 95 % interval of the share."""

    hits: int
    pairs: int
    low: float
    high: float


@dataclass(frozen=True)
class Wrong:
    """A negative pair that was accepted, or a positive one that was not, with the gate's reasons."""

    index: int
    role: str
    dataset: str
    kind: str
    verdict: Verdict
    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class GateReport:
    """What `evaluate_gate` found.

    false_accepts: GRAFT among negatives, without the noisy datasets. coverage: GRAFT among positives, likewise. noisy:
    the rows of noisy datasets. false_refusals counts by reason code. pairs_per_second is of this run on this machine.
    """

    policy: Policy
    pairs: int
    malformed: int
    false_accepts: Share
    coverage: Share
    rows: tuple[Row, ...]
    noisy: tuple[Row, ...]
    accepted_wrongly: tuple[Wrong, ...]
    refused_wrongly: tuple[Wrong, ...]
    refusal_reasons: tuple[tuple[str, int], ...]
    seconds: float

    @property
    def pairs_per_second(self) -> float:
        return self.pairs / self.seconds if self.seconds > 0 else 0.0

    def to_json(self) -> str:
        """The report as JSON text with stable keys."""
        value = {
            "policy": str(self.policy),
            "pairs": self.pairs,
            "malformed": self.malformed,
            "pairs_per_second": round(self.pairs_per_second, 1),
            "seconds": round(self.seconds, 3),
            "false_accepts": _share_json(self.false_accepts),
            "coverage": _share_json(self.coverage),
            "by_kind": [_row_json(row) for row in self.rows],
            "noisy_datasets": [_row_json(row) for row in self.noisy],
            "accepted_wrongly": [_wrong_json(w) for w in self.accepted_wrongly],
            "refused_wrongly": [_wrong_json(w) for w in self.refused_wrongly],
            "refusal_reasons": dict(self.refusal_reasons),
        }
        return json.dumps(value, ensure_ascii=False, indent=2)


def evaluate_gate(
    pairs: Path,
    policy: Policy,
    *,
    verdicts: Path | None = None,
    calibration: Calibration | None = None,
    progress: Callable[[int], None] | None = None,
) -> GateReport:
    """Judges every pair of a file and counts.

    A row needs `base_question` and `variant_question`; `role`, `kind` and `dataset` only sort the counts. A malformed
    row is a REFUSE with a reason. `verdicts` gets one line a pair in the file's order and is complete or absent.
    `progress` is called with the number of pairs done. Raises `NotFound` where the file cannot be read and
    `NotWritable` where the verdicts cannot be written.
    """
    counts: dict[tuple[str, str, str], list[int]] = {}
    accepted: list[Wrong] = []
    refused: list[Wrong] = []
    reasons: dict[str, int] = {}
    done = malformed = 0
    started = time.perf_counter()
    partial = verdicts.with_name(verdicts.name + ".part") if verdicts is not None else None
    with ExitStack() as stack:
        out = stack.enter_context(_open(partial)) if partial is not None else None
        for pair, judgement in _judged(read_pairs(pairs), policy, calibration):
            done += 1
            malformed += bool(pair.malformed)
            place = {Verdict.GRAFT: 0, Verdict.TRANSFER: 1, Verdict.REFUSE: 2}[judgement.verdict]
            counts.setdefault((pair.role, pair.dataset, pair.kind), [0, 0, 0])[place] += 1
            _note_errors(pair, judgement, accepted, refused, reasons)
            if out is not None:
                out.write(_verdict_line(pair, judgement))
            if progress is not None:
                progress(done)
    seconds = time.perf_counter() - started
    if partial is not None and verdicts is not None:
        os.replace(partial, verdicts)
    rows = tuple(_row(key, value) for key, value in sorted(counts.items()))
    clean = tuple(r for r in rows if r.dataset not in NOISY_DATASETS)
    return GateReport(
        policy,
        done,
        malformed,
        _share(r for r in clean if r.role == "negative"),
        _share(r for r in clean if r.role == "positive"),
        clean,
        tuple(r for r in rows if r.dataset in NOISY_DATASETS),
        tuple(accepted[:MAX_ERRORS_SHOWN]),
        tuple(refused[:MAX_ERRORS_SHOWN]),
        tuple(sorted(reasons.items(), key=lambda item: (-item[1], item[0]))),
        seconds,
    )


def _judged(pairs: Iterable[Pair], policy: Policy, calibration: Calibration | None) -> Iterable[tuple[Pair, Judgement]]:
    for pair in pairs:
        if pair.malformed:
            yield pair, Judgement(Verdict.REFUSE, policy, (Reason("malformed", pair.malformed),), ())
        else:
            yield pair, judge(pair.base, pair.variant, policy, calibration=calibration)


def _note_errors(
    pair: Pair, judgement: Judgement, accepted: list[Wrong], refused: list[Wrong], reasons: dict[str, int]
) -> None:
    if pair.dataset in NOISY_DATASETS:
        return
    wrong = Wrong(pair.index, pair.role, pair.dataset, pair.kind, judgement.verdict, judgement.reasons)
    if pair.role == "negative" and judgement.verdict is Verdict.GRAFT:
        accepted.append(wrong)
    elif pair.role == "positive" and judgement.verdict is not Verdict.GRAFT:
        refused.append(wrong)
        for code in sorted({reason.code for reason in judgement.reasons}):
            reasons[code] = reasons.get(code, 0) + 1


def _open(path: Path) -> IO[str]:
    try:
        return path.open("w", encoding="utf-8", newline="\n")
    except OSError as error:
        raise NotWritable(f"cannot write the verdicts to {path}: {error.strerror}") from error


def _verdict_line(pair: Pair, judgement: Judgement) -> str:
    value = {
        "index": pair.index,
        "verdict": str(judgement.verdict),
        "reasons": [{"code": r.code, "text": r.text} for r in judgement.reasons],
    }
    # a lone surrogate in a problem is quoted in a reason: ASCII escapes keep the file valid UTF-8
    return json.dumps(value, ensure_ascii=True) + "\n"


def _row(key: tuple[str, str, str], value: list[int]) -> Row:
    graft, transfer, refuse = value
    total = graft + transfer + refuse
    interval = clopper_pearson(graft, total)
    return Row(*key, total, graft, transfer, refuse, interval.low, interval.high)


def _share(rows: Iterable[Row]) -> Share:
    hits = pairs = 0
    for row in rows:
        hits, pairs = hits + row.graft, pairs + row.pairs
    if not pairs:
        return Share(0, 0, 0.0, 1.0)
    interval = clopper_pearson(hits, pairs)
    return Share(hits, pairs, interval.low, interval.high)


def _share_json(share: Share) -> dict[str, object]:
    rate = share.hits / share.pairs if share.pairs else None
    return {"hits": share.hits, "pairs": share.pairs, "share": rate, "low": share.low, "high": share.high}


def _row_json(row: Row) -> dict[str, object]:
    return {
        "role": row.role,
        "dataset": row.dataset,
        "kind": row.kind,
        "pairs": row.pairs,
        "graft": row.graft,
        "transfer": row.transfer,
        "refuse": row.refuse,
        "graft_low": row.low,
        "graft_high": row.high,
    }


def _wrong_json(wrong: Wrong) -> dict[str, object]:
    return {
        "index": wrong.index,
        "role": wrong.role,
        "dataset": wrong.dataset,
        "kind": wrong.kind,
        "verdict": str(wrong.verdict),
        "reasons": [{"code": r.code, "text": r.text} for r in wrong.reasons],
    }
