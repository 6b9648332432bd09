"""The Graft lab in a real browser: changes to a problem, three runs with their formulas, labels, all pairs again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from core.evaluate.mutate import KINDS
from tests.browser.driving import open_page, tab, text
from tests.ui.serving import Server, served

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("lab"), pace=0.01) as running:
        yield running


@pytest.fixture
def page(browser: Any, server: Server) -> Iterator[Any]:
    opened, seen = open_page(browser, server.url)
    tab(opened, "Graft lab")
    opened.wait_for_function("document.querySelector('#lab-query textarea')?.value.length > 20")
    opened.wait_for_selector("#lab-judgement >> text=GRAFT")
    yield opened
    opened.context.close()
    assert seen.outside == []
    assert seen.errors == []


def query(page: Any) -> str:
    return str(page.input_value("#lab-query textarea"))


def test_each_change_makes_another_text_or_says_that_there_is_none(page: Any) -> None:
    tab(page, "Library")
    page.click("#library-table tr:has-text('There are 5 cards')")
    page.wait_for_selector("#library-detail >> text=There are 5 cards")
    page.click("#library-graft")
    page.wait_for_function("document.querySelector('#lab-query textarea')?.value.startsWith('There are 5 cards')")
    stored = query(page)
    made = set()
    for kind in KINDS:
        before = query(page)
        page.evaluate("document.querySelectorAll('#lab-message .sc-notice').forEach(e => e.remove())")
        page.click(f"#lab-{kind}")
        page.wait_for_function(
            "before => document.querySelector('#lab-query textarea').value !== before"
            " || document.querySelector('#lab-message .sc-notice')",
            arg=before,
        )
        if query(page) != before:
            made.add(kind)
            assert query(page) != stored
    assert {"number", "negate", "target", "rephrase"} <= made  # this problem offers a place for each of these
    page.fill("#lab-query textarea", stored.replace("5", "6"))
    page.wait_for_selector("#lab-judgement .sc-edits li")


def test_three_runs_with_formulas_then_a_label_and_its_export(page: Any, server: Server) -> None:
    before = len(server.library.labels())
    page.click("#lab-number")
    page.wait_for_selector("#lab-judgement mark")
    page.check("#lab-blind input")
    page.click("#lab-run")
    page.wait_for_selector("#lab-runs .sc-run:nth-child(3) .katex")
    assert "Run A" in text(page, "#lab-runs")
    assert "Ungated" not in text(page, "#lab-runs")
    page.click("#lab-label label:has-text('unsure')")
    page.fill("#lab-note textarea, #lab-note input", "a matter of taste")
    page.click("#lab-save")
    page.wait_for_selector("#lab-saved >> text=Labelled unsure")
    page.wait_for_selector("#lab-runs >> text=Ungated graft")  # the label is given: the runs get their names
    with page.expect_download() as downloading:
        page.click("text=Export as JSONL")
    rows = [json.loads(line) for line in downloading.value.path().read_text(encoding="utf-8").splitlines()]
    assert len(rows) == before + 1
    (mine,) = [row for row in rows if row["note"] == "a matter of taste"]
    assert (mine["label"], mine["query"]) == ("unsure", query(page))
    page.click("#lab-again")
    page.wait_for_selector(f"#lab-repeated .sc-stat >> text={before + 1}")


def test_a_label_needs_a_choice(page: Any, server: Server) -> None:
    before = len(server.library.labels())
    page.click("#lab-save")
    page.wait_for_selector("#lab-saved >> text=choose safe, unsafe or unsure")
    assert len(server.library.labels()) == before


def test_a_comparison_can_be_cancelled(browser: Any, tmp_path: Any) -> None:
    with served(tmp_path, pace=0.5) as slow:
        page, _ = open_page(browser, slow.url)
        tab(page, "Graft lab")
        page.wait_for_selector("#lab-judgement >> text=GRAFT")
        page.click("#lab-run")
        page.wait_for_selector("#lab-cancel", state="visible")
        page.wait_for_selector("#lab-runs .sc-run-text:not(:empty)")
        page.click("#lab-cancel")
        page.wait_for_selector("#lab-trouble >> text=The comparison was cancelled")
        page.context.close()
