"""The newest near-miss report, kept beside the library for the Dashboard to draw. Knows a file, no experiment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from library.errors import FormatError, NotWritable


def last_path(library: Path) -> Path:
    """Where the newest report of near-misses lies: beside the library's folder."""
    return library.with_name("near-miss.json")


def keep_last(library: Path, report: Mapping[str, Any], created: str) -> Path:
    """Writes the report without its single variants; `created` is RFC 3339. Raises `NotWritable`."""
    path = last_path(library)
    kept = {"created": created, **{name: value for name, value in report.items() if name != "variants"}}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(kept, ensure_ascii=True, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise NotWritable(f"cannot keep the report at {path}: {error.strerror}") from error
    return path


def read_last(library: Path) -> dict[str, Any] | None:
    """The newest report, or None where no experiment was run. Raises `FormatError` for another file."""
    path = last_path(library)
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise FormatError(f"{path} is not a report of near-misses: {error}") from error
    if not isinstance(value, dict) or value.get("experiment") != "near-miss":
        raise FormatError(f"{path} is not a report of near-misses")
    return value
