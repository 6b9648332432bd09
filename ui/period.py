"""The days that the dashboard looks at: one of the usual ranges, or from one date to another. Knows no Gradio.

The page and the CSV links say the same range in the same words, so that a figure and its data cannot differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from library.errors import UsageError

DATES = "Dates"
RANGES = {"7 days": 7, "30 days": 30, "90 days": 90, "All": 0}
CHOICES = (*RANGES, DATES)
USUAL = "30 days"
_END = "9999"  # after every date


@dataclass(frozen=True)
class Period:
    """[since, until) as RFC 3339 text in UTC, and the words that the period was asked by."""

    choice: str
    first: str = ""
    last: str = ""
    since: str = ""
    until: str = _END

    @property
    def query(self) -> dict[str, str]:
        """What a link to data over this period carries."""
        return {"days": self.choice} | ({"first": self.first, "last": self.last} if self.choice == DATES else {})

    def holds(self, created: str) -> bool:
        """Whether something of this time falls into the period."""
        return self.since <= created < self.until


def period(choice: str, first: str = "", last: str = "", now: datetime | None = None) -> Period:
    """The period that is meant. `first` and `last` are `YYYY-MM-DD`, both included, each may be empty; they count only
    under `DATES`. `UsageError` if one is no date, or if the last is before the first."""
    if choice != DATES:
        days = RANGES.get(choice, RANGES[USUAL])
        since = (now or datetime.now(UTC)) - timedelta(days=days)
        return Period(choice, since=_stamp(since) if days else "")
    begin, end = _date(first, "first"), _date(last, "last")
    if begin and end and end < begin:
        raise UsageError(f"the last day, {end}, is before the first, {begin}")
    return Period(
        DATES,
        begin.isoformat() if begin else "",
        end.isoformat() if end else "",
        begin.isoformat() if begin else "",
        (end + timedelta(days=1)).isoformat() if end and end < date.max else _END,
    )


def _date(text: str, which: str) -> date | None:
    text = (text or "").strip()
    if not text:
        return None
    try:
        return date.fromisoformat(text[:40])
    except ValueError:
        raise UsageError(f"the {which} day is not a date such as 2026-01-31: {text[:40]!r}") from None


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
