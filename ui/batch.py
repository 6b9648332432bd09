"""Reads an uploaded list of problems: JSON lines or CSV. Data only: it is never run, and a bad line is named.

Knows the file's form, not what becomes of the problems.
"""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass

from library.errors import UsageError

MAX_ROWS = 500
MAX_BYTES = 4 << 20
_PROBLEM = ("problem", "question", "text", "prompt")
_ANSWER = ("answer", "reference", "solution", "final_answer")


@dataclass(frozen=True)
class Row:
    problem: str
    reference: str | None


def read_rows(data: bytes, name: str) -> tuple[Row, ...]:
    """The problems in a file, in order. `UsageError` names the line that cannot be read and why."""
    if len(data) > MAX_BYTES:
        raise UsageError(f"the file has {len(data)} bytes, at most {MAX_BYTES} are read; split it")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"the file is not UTF-8 text (byte {error.start})") from error
    looks_like_json = text.lstrip()[:1] in ("{", "[")
    rows = _csv(text) if name.lower().endswith(".csv") and not looks_like_json else _json_lines(text)
    if not rows:
        raise UsageError("the file holds no problem")
    if len(rows) > MAX_ROWS:
        raise UsageError(f"the file holds {len(rows)} problems, at most {MAX_ROWS} are taken at once; split it")
    return rows


def _json_lines(text: str) -> tuple[Row, ...]:
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"line {number} is not JSON: {error}") from error
        if not isinstance(item, dict):
            raise UsageError(f"line {number} is not an object with a problem")
        rows.append(_row({str(key): value for key, value in item.items()}, number))
    return tuple(rows)


def _csv(text: str) -> tuple[Row, ...]:
    try:
        reader = csv.DictReader(io.StringIO(text), strict=True)
        return tuple(_row(dict(item), reader.line_num) for item in reader)
    except csv.Error as error:
        raise UsageError(f"the CSV cannot be read: {error}") from error


def _row(item: dict[str, object], number: int) -> Row:
    problem = next((item[name] for name in _PROBLEM if item.get(name)), None)
    if not isinstance(problem, str) or not problem.strip():
        raise UsageError(f"line {number} has no text under {', '.join(_PROBLEM)}")
    answer = next((item[name] for name in _ANSWER if item.get(name) not in (None, "")), None)
    if answer is not None and not isinstance(answer, str | int | float):
        raise UsageError(f"line {number}: the answer is neither text nor a number")
    return Row(problem.strip(), None if answer is None else str(answer).strip())
