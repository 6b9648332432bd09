"""The README's tour in a real browser on the real embedded model, from an empty library: submit, watch, approve,
browse, ask again, graft, label. Each step uses only what stands on the page after the one before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.driving import open_page, tab, text
from tests.ui.serving import Server, program

pytestmark = [pytest.mark.browser, pytest.mark.model, pytest.mark.slow]
LONG = 300_000  # milliseconds: the first solve converts and loads the model


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with program(tmp_path_factory.mktemp("walk")) as running:
        yield running


def solve(page: Any, server: Server) -> None:
    """Takes an example and solves it, following the stream until the attempt can be reviewed."""
    page.click("#example-0")
    page.wait_for_function("document.querySelector('#solve-problem textarea')?.value.length > 20")
    page.click("#solve-go")
    page.wait_for_selector("#solve-live .sc-text:not(:empty)", timeout=LONG)
    assert "tokens" in text(page, "#solve-status")
    page.wait_for_selector("#solve-review", state="visible", timeout=LONG)
    assert "done" in text(page, "#solve-status")


def test_the_whole_way(browser: Any, server: Server) -> None:
    page, seen = open_page(browser, server.url)
    assert "0 artifacts" in text(page, "#top")
    assert "Ask again" in text(page, "#solve-status")  # what this is, before there is any work
    solve(page, server)
    page.wait_for_selector("#top >> text=1 to review")
    evidence = text(page, "#solve-evidence")
    assert "replays" in evidence

    page.click("#solve-review")
    page.wait_for_selector("#review-head .sc-problem")
    assert "peanuts" in text(page, "#review-head")
    page.keyboard.press("a")
    page.wait_for_selector("#review-message >> text=Approved")
    page.click("#review-publish")
    page.wait_for_selector("#review-message >> text=In the library")
    page.wait_for_selector("#top >> text=1 artifact")
    assert page.locator("#review-approve").is_hidden()  # nothing is left to decide
    assert "Ask the same problem again in Solve" in text(page, "#review-message")
    (row,) = server.library.index.artifacts()
    assert row.state == "published"

    tab(page, "Library")
    page.click("#library-table tbody tr")
    page.wait_for_selector("#library-detail .sc-problem")
    assert row.digest[7:15] in text(page, "#library-detail")
    assert "Certificate" in text(page, "#library-detail")
    page.click("#library-verify")
    page.wait_for_selector("#library-work >> text=every byte is as deposited")
    with page.expect_download() as downloading:
        page.click("#library-detail >> text=Download")
    assert downloading.value.path().stat().st_size == row.size_bytes

    tab(page, "Solve")  # the problem still stands there, and now the library holds it
    page.wait_for_selector("#solve-offer >> text=GRAFT")
    page.wait_for_selector("#solve-review", state="hidden")
    page.click("#solve-ask")
    page.wait_for_selector("#solve-result >> text=byte-exact", timeout=LONG)
    said = text(page, "#solve-result")
    assert "GRAFT" in said
    assert row.answer in said
    (outcome,) = server.library.outcomes()
    assert outcome.verdict == "GRAFT"
    assert outcome.exactness == "byte-exact"
    assert outcome.decode_tokens <= 12
    assert outcome.tokens_saved == row.solve_tokens - outcome.decode_tokens

    tab(page, "Graft lab")
    page.wait_for_function("document.querySelector('#lab-query textarea')?.value.length > 20")
    page.click("#lab-number")
    page.wait_for_selector("#lab-judgement mark")
    assert "GRAFT" not in text(page, "#lab-judgement")
    page.click("#lab-run")
    page.wait_for_selector("#lab-runs .sc-run:nth-child(3) .sc-answer", timeout=LONG)
    assert page.locator("#lab-runs .sc-run").count() == 3
    assert "Ungated graft" in text(page, "#lab-runs")
    page.click("#lab-label label:has-text('unsafe')")
    page.click("#lab-save")
    page.wait_for_selector("#lab-saved >> text=Labelled unsafe")
    assert [label.label for label in server.library.labels()] == ["unsafe"]

    tab(page, "Dashboard")
    page.wait_for_selector("#figure-saved .plot-container")
    assert re.search(r"Tokens saved\s*\d", text(page, "#dashboard-tiles"))
    assert seen.outside == []
    assert seen.errors == []


def test_a_reload_in_the_middle_resumes_and_cancel_frees_the_worker(browser: Any, server: Server) -> None:
    page, _ = open_page(browser, server.url)
    page.fill("#solve-problem textarea", "Write down the numbers from one to five hundred, each with its square.")
    page.click("#solve-go")
    page.wait_for_selector("#solve-live .sc-text:not(:empty)", timeout=LONG)
    before = text(page, "#solve-live")
    page.reload()
    page.wait_for_selector("#solve-live .sc-text:not(:empty)")
    assert len(text(page, "#solve-live")) >= len(before) - 1
    page.click("#solve-cancel")
    page.wait_for_selector("#solve-status .sc-progress > .sc-line >> text=cancelled")
    jobs = server.library.jobs(limit=1)
    assert jobs[0].state == "cancelled"
    page.fill("#solve-problem textarea", "There are 4 cards. 3 cards more are added. How many are there total?")
    page.click("#solve-go")
    page.wait_for_selector("#solve-status .sc-progress > .sc-line >> text=running", timeout=LONG)
    page.click("#solve-cancel")


STORY = """The old vault behind the mill had a code that only Anna knew. Boris carried a copper kettle to the quarry.

Clara walked from the harbour to the market square before the rain began. The Dunmore bridge was built in the year 1847.
Nobody at the chapel remembered why David had asked about the tide tables."""


def test_a_book_is_built_accepted_and_asked(browser: Any, server: Server) -> None:
    page, seen = open_page(browser, server.url)
    tab(page, "Library")
    tab(page, "Books")
    page.wait_for_selector("#books-table .sc-empty")
    page.fill("#books-name input, #books-name textarea", "Dunmore")
    story = {"name": "dunmore.txt", "mimeType": "text/plain", "buffer": STORY.encode()}
    page.set_input_files("#books-files input[type=file]", [story])
    page.wait_for_selector("#books-files .file-preview")
    page.click("#books-build")
    page.wait_for_selector("#books-accept", state="visible", timeout=LONG)
    view = server.library.book("Dunmore")
    (segment,) = server.library.segments(view.id)
    page.click("#books-accept")
    page.wait_for_selector("#books-question", state="visible")
    page.fill("#books-question textarea", "In which year was the Dunmore bridge built?")
    page.click("#books-ask")
    page.wait_for_selector("#books-answer .sc-answer", timeout=LONG)
    said = text(page, "#books-answer")
    assert "1847" in said
    assert f"segment 0, dunmore.txt, characters {STORY.index('The Dunmore')} to" in said
    assert f"addressable {segment.tokens} tokens of text" in said
    page.fill("#books-question textarea", "Who sold the xylophone of Marrakesh?")
    page.click("#books-ask")
    page.wait_for_selector("#books-answer >> text=The book does not say", timeout=LONG)
    outcomes = server.library.outcomes(limit=2)
    assert [outcome.verdict for outcome in outcomes] == ["REFUSE", "TRANSFER"]
    assert server.library.artifact(str(segment.artifact)).kind == "segment"
    assert seen.errors == []
    assert seen.outside == []
