"""Labelled pairs to a calibration of the gate, with where the labels come from and what every threshold would do.

Reads files of pairs and reviewers' labels; knows no library and no model. Writes two files: the calibration, only where
it may be used, and a report beside it, always.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from core.evaluate.gate import NOISY_DATASETS
from core.evaluate.pairs import read_pairs
from core.evaluate.report import read_json
from core.evaluate.stats import clopper_pearson
from core.gate import CANONICAL_VERSION, Calibration, Policy, Verdict, calibrate, canonical, judge
from library.digest import digest_bytes
from library.errors import FormatError, NotWritable

STEPS = 20
_SCHEMA = 1
_WHAT = "a calibration report"


class Label(Protocol):
    """A reviewer's judgement as the library keeps it."""

    stored: str
    query: str
    label: str


@dataclass(frozen=True)
class Source:
    """Where labels came from. `digest` names a file's bytes; unused are noisy, unsure or unlabelled rows."""

    kind: str
    name: str
    digest: str
    different: int
    same: int
    unused: int


@dataclass(frozen=True)
class Point:
    """What a threshold accepts: `wrong` of `different`, `covered` of `same`, with exact 95 % intervals."""

    threshold: float
    wrong: int
    different: int
    wrong_low: float
    wrong_high: float
    covered: int
    same: int
    covered_low: float
    covered_high: float


@dataclass(frozen=True)
class Calibrated:
    """`pairs` counts different pairs of texts; a pair with two opposite labels counts as a different problem."""

    calibration: Calibration
    sources: tuple[Source, ...]
    pairs: int
    curve: tuple[Point, ...]

    def report(self, *, by: str, created: str) -> dict[str, Any]:
        return {
            "schema": _SCHEMA,
            "created": created,
            "by": by,
            "canonical_version": CANONICAL_VERSION,
            "usable": self.calibration.usable,
            "words": self.calibration.explain(),
            "calibration": asdict(self.calibration),
            "pairs": self.pairs,
            "sources": [asdict(source) for source in self.sources],
            "curve": [asdict(point) for point in self.curve],
        }


def run(files: Sequence[Path], labels: Iterable[Label], delta: float) -> Calibrated:
    """Scores every labelled pair and looks for the threshold. Raises `NotFound` and `ValueError` (of `delta`)."""
    found: dict[tuple[str, str], tuple[str, str, bool]] = {}
    sources = [_take(_of_file(path), found, "file", path.name, str(digest_bytes(path.read_bytes()))) for path in files]
    rows = [(row.stored, row.query, {"safe": True, "unsafe": False}.get(row.label)) for row in labels]
    if rows:
        sources.append(_take(iter(rows), found, "labels", "reviewers", ""))
    scored = [(score_of(stored, query), same) for stored, query, same in found.values()]
    return Calibrated(calibrate(scored, delta), tuple(sources), len(scored), curve(scored))


def score_of(stored: str, query: str) -> float:
    """The score that the calibrated policy compares: 0 for what `edits` refuses, since no threshold lets it through."""
    judgement = judge(stored, query, Policy.EDITS)
    return judgement.score or 0.0 if judgement.verdict is Verdict.GRAFT else 0.0


def curve(scored: Sequence[tuple[float, bool]]) -> tuple[Point, ...]:
    """What each of a row of thresholds from 0 to 1 accepts. Empty without labels."""
    different = [score for score, same in scored if not same]
    alike = [score for score, same in scored if same]
    points = []
    for step in range(1, STEPS + 1) if scored else ():
        least = step / STEPS
        wrong, covered = sum(s >= least for s in different), sum(s >= least for s in alike)
        low = clopper_pearson(wrong, len(different)) if different else None
        high = clopper_pearson(covered, len(alike)) if alike else None
        points.append(
            Point(
                least,
                wrong,
                len(different),
                low.low if low else 0.0,
                low.high if low else 1.0,
                covered,
                len(alike),
                high.low if high else 0.0,
                high.high if high else 1.0,
            )
        )
    return tuple(points)


def report_path(calibration: Path) -> Path:
    """The report beside a calibration file."""
    return calibration.with_suffix(".report.json")


def write(found: Calibrated, path: Path, *, by: str, created: str) -> None:
    """Writes the report, and the calibration where it may be used. Raises `NotWritable`."""
    text = json.dumps(found.report(by=by, created=created), ensure_ascii=True, indent=2)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        report_path(path).write_text(text + "\n", encoding="utf-8")
        if found.calibration.usable:
            path.write_bytes(found.calibration.to_json())
    except OSError as error:
        raise NotWritable(f"cannot write the calibration to {path}: {error.strerror}") from error


def read_report(path: Path) -> dict[str, Any] | None:
    """The report beside a calibration file, or None where there is none. Raises `FormatError` for another file."""
    kept = report_path(path)
    value = read_json(kept, _WHAT)
    if value is not None and (value.get("schema") != _SCHEMA or not isinstance(value.get("curve"), list)):
        raise FormatError(f"{kept} is not {_WHAT}")
    return value


def _of_file(path: Path) -> Iterator[tuple[str, str, bool | None]]:
    for pair in read_pairs(path):
        known = None if pair.malformed or pair.dataset in NOISY_DATASETS else pair.role
        yield pair.base, pair.variant, {"positive": True, "negative": False}.get(known or "")


def _take(
    rows: Iterator[tuple[str, str, bool | None]],
    found: dict[tuple[str, str], tuple[str, str, bool]],
    kind: str,
    name: str,
    digest: str,
) -> Source:
    different = same = unused = 0
    for stored, query, label in rows:
        if label is None:
            unused += 1
            continue
        different, same = different + (not label), same + label
        key = (canonical(stored), canonical(query))
        before = found.get(key)
        found[key] = (stored, query, label and (before is None or before[2]))
    return Source(kind, name, digest, different, same, unused)
