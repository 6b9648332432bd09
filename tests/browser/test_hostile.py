"""Hostile text in every field, in a real browser: nothing runs or is loaded from elsewhere, all of it is shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from core.engine import Engine
from core.settings import load_settings
from tests.browser.driving import open_page, tab, text
from tests.ui.doubles import add_attempt
from tests.ui.hostile import TEXTS
from tests.ui.serving import Server, served

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("hostile"), filled=False, pace=0.002, words="\n".join(TEXTS)) as running:
        library = running.library
        engine = Engine(load_settings(library=library.root), library)
        for number, hostile in enumerate(TEXTS):
            attempt = add_attempt(library, hostile, hostile, answer=hostile[:400], reference=hostile[:400])
            library.decide(attempt, version=1, reviewer=hostile[:60], action="note", reason=hostile)
            if number % 2:
                decided = engine.decide(attempt, version=2, reviewer=hostile[:60], action="approve", reason=hostile)
                assert decided.artifact is not None
                if number % 4 == 3:
                    library.set_artifact_state(decided.artifact.digest, "held", hostile, hostile[:60])
        engine.label(TEXTS[0], TEXTS[1], "unsafe", note=TEXTS[2], by=TEXTS[3])
        yield running


@pytest.fixture
def page(browser: Any, server: Server) -> Iterator[Any]:
    opened, seen = open_page(browser, server.url)
    dialogs: list[str] = []

    def dismiss(dialog: Any) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    opened.on("dialog", dismiss)
    yield opened
    ran = opened.evaluate("window.__ran")
    opened.context.close()
    assert ran is None
    assert dialogs == []
    assert seen.outside == []


def test_as_a_problem_and_as_the_models_words(page: Any) -> None:
    for hostile in TEXTS[:-1]:
        page.fill("#solve-problem textarea", hostile)
        page.wait_for_timeout(60)
        assert page.evaluate("window.__ran") is None, hostile
    page.fill("#solve-problem textarea", "\n".join(TEXTS))
    page.fill("#solve-reference textarea, #solve-reference input", TEXTS[0])
    page.click("#solve-go")
    page.wait_for_selector("#solve-review", state="visible")
    page.wait_for_timeout(500)
    # the prose shows the text itself, as text
    assert "<script>window.__ran=1</script>" in text(page, "#solve-solution")
    names = page.evaluate("[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames())")
    assert not [name for name in names if name.startswith("on")]


def test_as_records_under_review(page: Any, server: Server) -> None:
    tab(page, "Review")
    page.wait_for_selector("#review-head .sc-problem")
    for row in server.library.attempts(limit=100):
        page.goto(f"{server.url}/?tab=review&id={row.id}")
        page.wait_for_selector(f"#review-head >> text={row.id[:8]}")
        page.wait_for_timeout(150)
        assert page.evaluate("window.__ran") is None, row.solution[:200]
    page.fill("#review-note textarea, #review-note input", TEXTS[1])
    page.click("button:has-text('Add note')")
    page.wait_for_selector("#review-message >> text=Noted")


def test_as_artifacts_and_in_the_lab(page: Any, server: Server) -> None:
    tab(page, "Library")
    rows = page.locator("#library-table tbody tr")
    rows.first.wait_for()
    for number in range(rows.count()):
        rows.nth(number).click()
        page.wait_for_function(f"document.querySelectorAll('#library-table tbody tr')[{number}].matches('.sc-chosen')")
    page.fill("#library-search textarea, #library-search input", TEXTS[3])
    page.keyboard.press("Enter")
    page.wait_for_timeout(500)
    tab(page, "Graft lab")
    page.wait_for_selector("#lab-judgement .sc-verdict")
    for hostile in TEXTS[:-1]:
        page.fill("#lab-query textarea", hostile)
    page.fill("#lab-query textarea", TEXTS[0])
    page.click("#lab-run")
    page.wait_for_selector("#lab-runs .sc-run:nth-child(3) .sc-run-prose", state="visible")
    page.wait_for_timeout(500)
    assert "<script>window.__ran=1</script>" in text(page, "#lab-runs")
    page.click("#lab-again")
    page.wait_for_selector("#lab-repeated .sc-stat, #lab-repeated .sc-notice, #lab-repeated .sc-empty-title")
    tab(page, "Dashboard")
    page.wait_for_selector("#dashboard-tiles .sc-stat")
    page.wait_for_timeout(500)


def test_in_the_address(page: Any, server: Server) -> None:
    for hostile in TEXTS[:-1]:
        page.goto(server.url + "/?tab=review&id=" + page.evaluate("encodeURIComponent", hostile[:300]))
        page.wait_for_selector(".sc-top-facts")
        assert page.evaluate("window.__ran") is None, hostile
