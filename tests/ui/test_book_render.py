"""Books as the page shows them: hostile text everywhere stays text, both lengths stand there, every state is told."""

from __future__ import annotations

from typing import Any

import pytest

from core.books.curate import BookView
from core.jobs import JobView, Progress
from library.tables import Segment
from tests.ui.hostile import TEXTS
from tests.ui.test_html import Elements
from tests.ui.test_render import ALLOWED, DIGEST, EVIL
from ui.render import books
from ui.render.html import visible

STATES = ("building", "pending", "accepted", "revoked")
SAID: dict[str, Any] = {
    "ordinal": 3, "file": EVIL, "start": 10, "end": 900, "text": EVIL, "known": True, "note": EVIL, "quote": EVIL,
    "quote_start": 40, "quote_end": 77,
}  # fmt: skip
ANSWER: dict[str, Any] = {
    "question": EVIL, "answer": EVIL, "source": SAID, "agreeing": [3, 4], "answers": [SAID], "reasons": [EVIL],
    "addressable_tokens": 262_144, "attended_tokens": 2_110, "first_token_seconds": 0.3, "seconds": 4.0,
}  # fmt: skip


def view(state: str = "accepted", **changes: Any) -> BookView:
    fields: dict[str, Any] = {
        "name": EVIL[:90], "state": state, "digest": DIGEST, "model": EVIL, "identity": DIGEST, "segment_tokens": 2048,
        "segments": 166, "addressable_tokens": 262_242, "attended_tokens": 2_126, "stored_bytes": 262_242 * 47_518,
        "artifacts": (("published", 160), ("evicted", 6)), "files": (EVIL,), "created": "x", "created_by": EVIL,
    }  # fmt: skip
    return BookView(**{**fields, **changes})


def job(kind: str, state: str, **changes: Any) -> JobView:
    progress = Progress(phase="segment 3 of 9, 4 min left", tokens=30, budget=90)
    fields: dict[str, Any] = {
        "id": "j1", "kind": kind, "state": state, "payload": {"book": EVIL}, "progress": progress, "result": {},
        "error": EVIL, "owner": "ada", "created": "x", "started": None, "finished": None,
    }  # fmt: skip
    return JobView(**{**fields, **changes})


SEGMENT = Segment(id="s", book_id="b", ordinal=0, file=EVIL, file_digest=DIGEST, start=0, end=9, tokens=7, text=EVIL)
PIECES = {
    "listing": books.listing([view(state) for state in STATES], EVIL[:90]),
    "nothing": books.listing([]),
    **{f"detail {state}": books.detail(view(state), [SEGMENT]) for state in STATES},
    "no book": books.detail(None),
    "answer": books.answer(ANSWER),
    "no answer": books.answer({**ANSWER, "answer": None, "source": None}),
    **{f"{kind} {state}": books.work(job(kind, state)) for kind in ("ingest", "book", "pack", "drop")
       for state in ("queued", "running", "done", "failed", "cancelled", "interrupted")},
}  # fmt: skip


@pytest.mark.parametrize("name", PIECES)
def test_hostile_text_stays_text(name: str) -> None:
    found = Elements(PIECES[name])
    assert {element for element, _ in found.seen} <= ALLOWED | {"q"}
    for _, attributes in found.seen:
        assert not [name for name in attributes if name.startswith("on") or name in ("style", "src", "href")]


@pytest.mark.parametrize("said", TEXTS[:-1])
def test_an_answer_shows_the_text_itself(said: str) -> None:
    shown = Elements(books.answer({**ANSWER, "question": said})).words
    assert " ".join(visible(said).split()) in " ".join(shown.split())


def words(name: str) -> str:
    return " ".join(Elements(PIECES[name]).words.split())


def test_both_lengths_and_the_cost_of_a_token_stand_there() -> None:
    shown = words("detail accepted")
    assert "262,242" in shown
    assert "2,126" in shown
    assert "46.4 KiB a token" in shown
    assert "262,144" in words("answer")
    assert "2,110" in words("answer")


def test_an_answer_names_its_place_and_that_nobody_checked_it() -> None:
    shown = words("answer")
    assert "segment 3" in shown
    assert "characters 40 to 77" in shown
    assert "unverified" in shown
    assert "2 segments say so" in shown


def test_not_knowing_is_said() -> None:
    assert "The book does not say" in words("no answer")
    assert "unverified" not in words("no answer")


def test_progress_has_its_time_left_and_a_stopped_build_its_way_on() -> None:
    assert "4 min left" in words("ingest running")
    assert "goes on from there" in words("ingest cancelled")
    assert "goes on from there" not in words("book cancelled")
