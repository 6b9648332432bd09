"""No two events that write to the same place of the page are answered side by side: the older could be shown last."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from typing import Any

import pytest

from tests.ui.serving import ROOT

# Asked once, when the page is loaded and nothing else has been; which tab is shown follows a person's own click.
_ARRIVAL, _TABS = "arrive", "tabs"


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("wiring")
    said = subprocess.run(
        [sys.executable, "-m", "tests.ui.wiring", str(folder)], cwd=ROOT, capture_output=True, check=True, timeout=300
    )
    found: list[dict[str, Any]] = json.loads(said.stdout)
    return found


def test_events_that_write_to_one_place_take_turns(events: list[dict[str, Any]]) -> None:
    answered = [event for event in events if event["queued"] and not event["listens"] and event["name"] != _ARRIVAL]
    assert 50 < len(answered) < len(events)
    for one, other in itertools.combinations(answered, 2):
        shared = {place for place in {*one["outputs"]} & {*other["outputs"]} if place != _TABS}
        turns = one["group"] == other["group"] and one["limit"] == other["limit"] == 1
        assert turns or not shared, f"{one['name']} and {other['name']} both write to {sorted(shared)}"


def test_every_listener_is_let_in(events: list[dict[str, Any]]) -> None:
    """Gradio drops a listener while the one before it listens, unless told otherwise: the page would show another job
    than the one that was chosen."""
    listeners = [event for event in events if event["listens"]]
    assert len(listeners) > 10
    for event in listeners:
        assert (event["mode"], event["limit"]) == ("multiple", None), event["name"]


def test_a_pick_is_not_dropped_for_the_one_before_it(events: list[dict[str, Any]]) -> None:
    picks = [event for event in events if event["on"] == "pick"]
    assert len(picks) >= 5
    assert {event["mode"] for event in picks} == {"multiple"}


def test_a_search_is_answered_with_what_is_written_last(events: list[dict[str, Any]]) -> None:
    fields = [event for event in events if event["on"] in ("change", "blur", "input") and event["queued"]]
    assert len(fields) >= 5
    assert {event["mode"] for event in fields} == {"always_last"}
