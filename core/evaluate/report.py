"""What every experiment shares: shares with intervals, a journal that a killed run continues from, JSON and figures.

Knows no model and no problem; a figure is one HTML file that needs no network.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from core.evaluate.stats import Interval, clopper_pearson, wilson
from library.errors import FormatError, NotFound, NotWritable, UsageError


@dataclass(frozen=True)
class Share:
    """`hits` of `n`, with Wilson's and the exact (Clopper-Pearson) 95 % interval of the share."""

    hits: int
    n: int
    wilson: Interval
    exact: Interval

    @property
    def share(self) -> float | None:
        """None where there is nothing to take a share of."""
        return self.hits / self.n if self.n else None

    def to_json(self) -> dict[str, Any]:
        return {
            "hits": self.hits,
            "n": self.n,
            "share": self.share,
            "wilson": [self.wilson.low, self.wilson.high],
            "clopper_pearson": [self.exact.low, self.exact.high],
        }

    def words(self) -> str:
        """`3/8 (38 %, exact 9 to 76 %)`, the form of the tables in the docs."""
        if not self.n:
            return "none"
        low, high = 100 * self.exact.low, 100 * self.exact.high
        return f"{self.hits}/{self.n} ({100 * self.hits / self.n:.0f} %, {low:.0f} to {high:.0f} %)"


def share(hits: int, n: int) -> Share:
    """Raises `ValueError` for counts that cannot be."""
    return Share(hits, n, wilson(hits, n), clopper_pearson(hits, n))


class Journal:
    """An append-only file of JSON lines: a header that says what the run is, then one line for each finished piece.

    A line is written whole and flushed to the disk before `add` returns. A line that a kill cut short is dropped when
    the file is opened again. Not for two processes at a time.
    """

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        """Opens or makes the file. Raises `UsageError` if it belongs to a run with other settings, naming them;
        `FormatError` if it is not a journal; `NotWritable`."""
        self.path = path
        self.rows: dict[str, dict[str, Any]] = {}
        self.header = json.loads(json.dumps(dict(header)))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            held = path.read_bytes() if path.exists() else b""
            whole = held[: held.rfind(b"\n") + 1]
            if whole:
                self._read(whole)
            self._stream = path.open("r+b" if held else "wb")
        except OSError as error:
            raise NotWritable(f"cannot write the progress file {path}: {error.strerror}") from error
        self._stream.truncate(len(whole))
        self._stream.seek(len(whole))
        if not whole:
            self._write(self.header)

    def _read(self, whole: bytes) -> None:
        lines = whole.decode("utf-8", errors="replace").splitlines()
        try:
            header, *rows = [json.loads(line) for line in lines]
            self.rows = {row["key"]: row for row in rows}
        except (ValueError, KeyError, TypeError) as error:
            raise FormatError(f"{self.path} is not a progress file of an experiment: {error}") from error
        names = sorted(header.keys() | self.header.keys()) if isinstance(header, dict) else ["header"]
        other = [name for name in names if not isinstance(header, dict) or header.get(name) != self.header.get(name)]
        if other:
            told = ", ".join(f"{name} is {_brief(self.header.get(name))}" for name in other[:4])
            raise UsageError(f"{self.path} belongs to a run with other settings (here {told}): give another --state")

    def __contains__(self, key: str) -> bool:
        return key in self.rows

    def get(self, key: str) -> dict[str, Any] | None:
        return self.rows.get(key)

    def add(self, key: str, row: Mapping[str, Any]) -> dict[str, Any]:
        """Keep a finished piece under its key; the row as it will be read back."""
        kept: dict[str, Any] = json.loads(json.dumps({"key": key, **row}))
        self._write(kept)
        self.rows[key] = kept
        return kept

    def _write(self, value: Mapping[str, Any]) -> None:
        self._stream.write(json.dumps(value, ensure_ascii=True).encode() + b"\n")
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def close(self) -> None:
        self._stream.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _brief(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:59] + "…"


@dataclass(frozen=True)
class Problem:
    """One row of a problems file: what to solve and what the right answer is."""

    id: str
    question: str
    answer: str


def read_problems(path: Path, limit: int | None = None) -> Iterator[Problem]:
    """Rows `id`, `question`, `answer` of a file of JSON lines, in order. Raises `NotFound`, `FormatError` by line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise NotFound(f"cannot read the problems file {path}: {error}") from error
    given = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    for number, line in given[:limit]:
        try:
            row = json.loads(line)
            problem = Problem(str(row.get("id", number)), str(row["question"]), str(row["answer"]))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise FormatError(f"{path}, line {number}: a problem needs question and answer ({error})") from error
        yield problem


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a report; whole or not at all. Raises `NotWritable`."""
    partial = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
        os.replace(partial, path)
    except OSError as error:
        raise NotWritable(f"cannot write the report to {path}: {error.strerror}") from error


def read_json(path: Path, what: str) -> dict[str, Any] | None:
    """What `write_json` wrote, or None where there is no file. Raises `FormatError`, which calls it `what`."""
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise FormatError(f"{path} is not {what}: {error}") from error
    if not isinstance(value, dict):
        raise FormatError(f"{path} is not {what}")
    return value


@dataclass(frozen=True)
class Bars:
    """A grouped bar chart of shares: one series an arm, one group a label; whiskers are the exact intervals."""

    title: str
    labels: tuple[str, ...]
    series: tuple[tuple[str, tuple[Share, ...]], ...]


def write_bars(folder: Path, name: str, bars: Bars) -> Path:
    """`folder/name.html`, which works alone and offline. Raises `NotWritable`."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for title, shares in bars.series:
        heights = [s.share or 0.0 for s in shares]
        figure.add_bar(
            name=title,
            x=list(bars.labels),
            y=heights,
            customdata=[[s.hits, s.n] for s in shares],
            hovertemplate="%{x}: %{customdata[0]} of %{customdata[1]}",
            error_y={
                "type": "data",
                "array": [s.exact.high - h for s, h in zip(shares, heights, strict=True)],
                "arrayminus": [h - s.exact.low for s, h in zip(shares, heights, strict=True)],
            },
        )
    return _write_figure(folder, name, figure, bars.title, "share (whiskers: exact 95 % interval)", percent=True)


def write_amounts(folder: Path, name: str, title: str, unit: str, amounts: Mapping[str, float]) -> Path:
    """A bar chart of plain amounts, on a logarithmic axis. Raises `NotWritable`."""
    import plotly.graph_objects as go

    figure = go.Figure(go.Bar(x=list(amounts), y=[max(value, 0.0) for value in amounts.values()]))
    figure.update_yaxes(type="log")
    return _write_figure(folder, name, figure, title, unit, percent=False)


def write_lines(
    folder: Path,
    name: str,
    title: str,
    axes: tuple[str, str],
    lines: Mapping[str, Mapping[float, float]],
    *,
    logarithmic: bool = False,
) -> Path:
    """A line chart over a logarithmic x axis, and y axis if asked: amounts by what they grow with, a series each.
    Raises `NotWritable`."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for series, points in lines.items():
        figure.add_scatter(name=series, x=sorted(points), y=[points[at] for at in sorted(points)], mode="lines+markers")
    figure.update_xaxes(type="log", title=axes[0])
    figure.update_yaxes(**({"type": "log"} if logarithmic else {"rangemode": "tozero"}))
    return _write_figure(folder, name, figure, title, axes[1], percent=False)


def _write_figure(folder: Path, name: str, figure: Any, title: str, axis: str, *, percent: bool) -> Path:
    figure.update_layout(title=title, barmode="group", template="plotly_white", yaxis_title=axis)
    if percent:
        figure.update_yaxes(range=[0, 1], tickformat=".0%")
    path = folder / f"{name}.html"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        figure.write_html(path, include_plotlyjs=True, full_html=True)
    except OSError as error:
        raise NotWritable(f"cannot write the figure {path}: {error.strerror}") from error
    return path


def markdown(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table as the docs hold it."""
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def settings_of(value: Any) -> dict[str, Any]:
    """A frozen dataclass as the JSON object of a header or report."""
    return asdict(value)
