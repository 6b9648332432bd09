"""Accessibility by axe-core on each tab, light and dark. Skipped where its script is not at hand.

`make axe` brings it with npm; AXE_SCRIPT names another place.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.driving import build_book, open_page, tab
from tests.ui.serving import ROOT, Server, served

pytestmark = pytest.mark.browser
SCRIPT = Path(os.environ.get("AXE_SCRIPT") or ROOT / "node_modules" / "axe-core" / "axe.min.js")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if not SCRIPT.is_file():
        pytest.skip(f"axe-core is not at {SCRIPT}: `make axe` fetches it, where there is npm")
    with served(tmp_path_factory.mktemp("axe")) as running:
        yield running


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", ["Solve", "Review", "Library", "Books", "Graft lab", "Dashboard"])
def test_no_serious_violation(browser: Any, server: Server, name: str, dark: bool) -> None:
    page, _ = open_page(browser, server.url, dark=dark)
    if name == "Solve":
        page.click("#example-0")
        page.wait_for_function("document.querySelector('#solve-problem textarea')?.value.length > 20")
        page.click("#solve-go")
        page.wait_for_selector("#solve-review", state="visible")
    if name == "Books":
        _asked_book(page, "Vaults in the dark" if dark else "Vaults")
    else:
        tab(page, name)
    if name == "Library":
        page.click("#library-table tbody tr")
        page.wait_for_selector("#library-detail .sc-problem")
    if name == "Dashboard":
        for figure in ("saved", "verdicts", "artifacts", "labels", "reviewers"):
            page.wait_for_selector(f"#figure-{figure} .plot-container")
    page.wait_for_timeout(1200)
    assert _serious(page) == []
    page.context.close()


@pytest.mark.parametrize("dark", [False, True])
def test_the_login_has_no_serious_violation(browser: Any, dark: bool, tmp_path: Path, server: Server) -> None:
    with served(tmp_path, filled=False, users={"ada": "admin"}) as guarded:
        context = browser.new_context(color_scheme="dark" if dark else "light")
        page = context.new_page()
        page.goto(guarded.url)
        page.fill("#username", "ada")
        page.fill("#password", "wrong")
        page.click("button[type=submit]")
        page.wait_for_selector(".sc-n-bad")
        assert _serious(page) == []
        context.close()


def _asked_book(page: Any, name: str) -> None:
    """A book in each of its states on the page: the list, the figures, the segments, a question with its answer."""
    tab(page, "Library")
    tab(page, "Books")
    build_book(page, name, "The code of vault v1 is 37.\n\nThe code of vault v2 is 74.")
    page.wait_for_selector("#books-accept", state="visible")
    page.click("#books-accept")
    page.fill("#books-question textarea", "What is the code of v2?")
    page.click("#books-ask")
    page.wait_for_selector("#books-answer .sc-answer")
    for fold in ("Segments", "segment said", "Keep small", "Length of a segment"):
        page.click(f"#library-parts >> text=/{fold}/ >> visible=true")


def _serious(page: Any) -> list[str]:
    page.add_script_tag(path=str(SCRIPT))
    found = page.evaluate("rules => axe.run(document, {runOnly: rules})", RULES)["violations"]
    return [
        f"{item['impact']} {item['id']}: {node['html'][:200]}"
        for item in found
        if item["impact"] in ("serious", "critical")
        for node in item["nodes"]
    ]
