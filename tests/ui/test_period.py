"""The dashboard's days: the usual ranges, from one date to another, and what is no range."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from library.errors import UsageError
from ui.period import CHOICES, DATES, RANGES, period

NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("choice", "since"),
    [
        ("7 days", "2026-03-24T12:00:00.000000Z"),
        ("90 days", "2025-12-31T12:00:00.000000Z"),
        ("All", ""),
        ("nothing of the kind", "2026-03-01T12:00:00.000000Z"),
    ],
)
def test_a_usual_range_ends_now(choice: str, since: str) -> None:
    found = period(choice, "2020-01-01", "2020-01-02", now=NOW)
    assert (found.since, found.until) == (since, "9999")
    assert found.query == {"days": choice}


@pytest.mark.parametrize(
    ("first", "last", "since", "until"),
    [
        ("2026-01-30", "2026-01-31", "2026-01-30", "2026-02-01"),
        ("2026-01-31", "2026-01-31", "2026-01-31", "2026-02-01"),
        ("", "2024-02-28", "", "2024-02-29"),
        (" 2026-01-31 ", "", "2026-01-31", "9999"),
        ("", "", "", "9999"),
        ("", "9999-12-31", "", "9999"),
    ],
)
def test_both_days_are_included(first: str, last: str, since: str, until: str) -> None:
    found = period(DATES, first, last)
    assert (found.since, found.until) == (since, until)
    assert found.query == {"days": DATES, "first": first.strip(), "last": last}


def test_what_falls_into_it() -> None:
    found = period(DATES, "2026-01-30", "2026-01-31")
    inside = ["2026-01-30T00:00:00.000000Z", "2026-01-31T23:59:59.999999Z"]
    outside = ["2026-01-29T23:59:59.999999Z", "2026-02-01T00:00:00.000000Z"]
    assert [found.holds(stamp) for stamp in inside + outside] == [True, True, False, False]
    assert period("All").holds("1970-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("first", "last"),
    [("yesterday", ""), ("", "2026-02-30"), ("2026-02-01", "2026-01-31"), ("'; DROP TABLE outcome", ""), ("1", "2")],
)
def test_what_is_no_range_is_said_so(first: str, last: str) -> None:
    with pytest.raises(UsageError, match="day"):
        period(DATES, first, last)


def test_the_choices_are_the_ranges_and_the_dates() -> None:
    assert list(CHOICES) == [*RANGES, DATES]
