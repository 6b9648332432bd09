"""Quantities in the few forms that the page uses everywhere. Plain text, no HTML."""

from __future__ import annotations

import re
from datetime import UTC, datetime


def count(number: float | None) -> str:
    """`12`, `1,234`, `1.2 M`; a dash for None."""
    if number is None:
        return "–"
    if abs(number) >= 1e15:
        return f"{number:.2e}"
    for limit, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if abs(number) >= limit:
            return f"{number / limit:.1f} {unit}"
    return f"{number:,.0f}"


def bytes_(number: float | None) -> str:
    """Binary units, `4.4 MiB`."""
    if number is None:
        return "–"
    size = float(number)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def seconds(number: float | None) -> str:
    """`85 ms`, `3.2 s`, `4 min 10 s`, `2 h 5 min`."""
    if number is None:
        return "–"
    if abs(number) < 1:
        return f"{number * 1000:.0f} ms"
    if abs(number) < 60:
        return f"{number:.1f} s"
    minutes, rest = divmod(round(number), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"


def joules(number: float | None) -> str:
    return "not metered" if number is None else f"{number:,.1f} J"


def when(stamp: str | None, now: datetime | None = None) -> str:
    """`12 s ago` up to a day, then the date and time in UTC; the text itself if it is not a time."""
    if not stamp:
        return "–"
    try:
        moment = datetime.fromisoformat(stamp)
    except ValueError:
        return stamp
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    passed = ((now or datetime.now(UTC)) - moment).total_seconds()
    for limit, unit, name in ((60, 1, "s"), (3600, 60, "min"), (86_400, 3600, "h")):
        if 0 <= passed < limit:
            return f"{int(passed // unit)} {name} ago"
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def short_digest(digest: str) -> str:
    """`blake3:9f3a21c4…` as `9f3a21c4`; ids are shortened likewise."""
    return digest.removeprefix("blake3:")[:8]


def clip(text: str, limit: int) -> str:
    """One line, cut at a word near `limit` characters with an ellipsis."""
    line = re.sub(r"\s+", " ", text).strip()
    if len(line) <= limit:
        return line
    cut = line[:limit].rsplit(" ", 1)[0] if " " in line[limit // 2 : limit] else line[:limit]
    return cut.rstrip(",;:") + "…"


def plural(number: int, one: str, many: str | None = None) -> str:
    return f"{count(number)} {one if number == 1 else many or one + 's'}"
