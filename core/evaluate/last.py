"""The newest near-miss report, kept beside the library for the Dashboard to draw. Knows a file, no experiment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.evaluate.report import read_json, write_json
from library.errors import FormatError

_WHAT = "a report of near-misses"


def last_path(library: Path) -> Path:
    """Where the newest report of near-misses lies: beside the library's folder."""
    return library.with_name("near-miss.json")


def keep_last(library: Path, report: Mapping[str, Any], created: str) -> Path:
    """Writes the report without its single variants; `created` is RFC 3339. Raises `NotWritable`."""
    path = last_path(library)
    write_json(path, {"created": created, **{name: value for name, value in report.items() if name != "variants"}})
    return path


def read_last(library: Path) -> dict[str, Any] | None:
    """The newest report, or None where no experiment was run. Raises `FormatError` for another file."""
    path = last_path(library)
    value = read_json(path, _WHAT)
    if value is not None and value.get("experiment") != "near-miss":
        raise FormatError(f"{path} is not {_WHAT}")
    return value
