"""What the experiment on books found, in figures. Knows its rows, not how they came about."""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path
from typing import Any

from core.books.ingest import Ingested
from core.evaluate.report import Bars, share, write_amounts, write_bars, write_json, write_lines


def timing(made: Ingested, asked: list[dict[str, Any]]) -> dict[str, Any]:
    """Seconds of the ingest; medians over the questions. `first_token_seconds` counts from the question on."""
    return {
        "ingest_seconds": made.seconds,
        "ingest_tokens_per_second": made.built_tokens / made.seconds if made.built else None,
        "first_token_seconds": statistics.median([row["first_token_seconds"] for row in asked] or [0.0]),
        "routing_seconds": statistics.median([row["routing_seconds"] for row in asked] or [0.0]),
        "answer_seconds": statistics.median([row["seconds"] for row in asked] or [0.0]),
    }


def recall(asked: list[dict[str, Any]], cut: list[dict[str, Any]], *, meaningful: bool) -> dict[str, Any]:
    """Shares of the needles, with the errors of routing and of reading told apart; what a random model says is None."""
    routed = [row for row in asked if row["routed"]]
    total = len(asked)
    measured: dict[str, Any] = {"routing_recall": len(routed) / total if total else None}
    measured["routing_recall_interval"] = share(len(routed), total).to_json()
    if not meaningful:
        return {**measured, "recall": None, "recall_when_routed": None, "baseline_recall": None}
    right = sum(row["right"] for row in asked)
    known = sum(row["right"] for row in routed)
    said = sum(row["segment_right"] for row in routed)
    return {
        **measured,
        "recall": right / total if total else None,
        "recall_interval": share(right, total).to_json(),
        "recall_when_routed": known / len(routed) if routed else None,
        "segment_right_when_routed": said / len(routed) if routed else None,
        "wrong_answers": sum(row["answer"] is not None and not row["right"] for row in asked),
        "no_answer": sum(row["answer"] is None for row in asked),
        "baseline_recall": sum(row["right"] for row in cut) / len(cut) if cut else None,
        "baseline_in_view": sum(row["in_view"] for row in cut) if cut else None,
        "baseline_positions": cut[0]["positions"] if cut else None,
        "baseline_prefill_seconds": cut[0]["prefill_seconds"] if cut else None,
        "baseline": cut,
    }


def write_figures(folder: Path, report: dict[str, Any]) -> list[Path]:
    """Recall by depth against the truncating baseline, and time to the first token by depth, as standalone HTML; and,
    over all runs of this model whose figures went to the same folder, peak memory and first token against length."""
    fifths = [[row for row in report["needles"] if int(row["depth"] * 5) == fifth] for fifth in range(5)]
    labels = tuple(f"depth {20 * n} to {20 * n + 20} %" for n in range(5))
    where = f"{report['model']}, {report['addressable_tokens']} tokens in {report['segments']} segments"
    series = [("right segment asked", tuple(share(sum(r["routed"] for r in part), len(part)) for part in fifths))]
    if report["recall"] is not None:
        series.append(("answer right", tuple(share(sum(r["right"] for r in part), len(part)) for part in fifths)))
        cut = [[row for row in report["baseline"] if int(row["depth"] * 5) == fifth] for fifth in range(5)]
        if any(cut):
            told = tuple(share(sum(r["right"] for r in part), len(part)) for part in cut)
            series.append(("end of the text only", told))
    first = {f"{row['depth']:.2f}": row["first_token_seconds"] for row in report["needles"]}
    name = f"context-{report['addressable_tokens']}"
    grown = _growth(folder, report)
    return [
        *grown,
        write_bars(folder, f"{name}-recall", Bars(f"Facts found by depth, {where}", labels, tuple(series))),
        write_amounts(folder, f"{name}-first-token", f"Time to the first token by depth, {where}", "seconds", first),
    ]


def _growth(folder: Path, report: dict[str, Any]) -> list[Path]:
    """This run's point is kept beside the figures; the lines go through all points of the model that are there."""
    model = re.sub(r"[^\w.-]+", "_", str(report["model"]))
    peaks = report["peak_bytes"]
    book = max(peaks["ingest"], peaks["verify"], peaks["ask"])
    point = {"book": book, "window": peaks["one_window"], "first_token": report["first_token_seconds"]}
    length = int(report["addressable_tokens"])
    write_json(folder / f"context-{model}-{length}.json", {"addressable_tokens": length, **point})
    ours = re.compile(rf"context-{re.escape(model)}-\d+\.json")
    kept = [path for path in sorted(folder.iterdir()) if ours.fullmatch(path.name)]
    points = [json.loads(path.read_text(encoding="utf-8")) for path in kept]

    def line(key: str, scale: float) -> dict[float, float]:
        return {point["addressable_tokens"]: point[key] * scale for point in points}

    title, tokens = f"against the length of the book, {report['model']}", "addressable tokens"
    memory = {"the book": line("book", 2**-20), "one window": line("window", 2**-20)}
    first = {"median over the questions": line("first_token", 1.0)}
    return [
        write_lines(folder, f"context-{model}-memory", f"Peak memory {title}", (tokens, "MiB"), memory),
        write_lines(folder, f"context-{model}-first", f"Time to the first token {title}", (tokens, "seconds"), first),
    ]
