"""Takes the pictures in docs/screenshots from the real program: `python -m tests.browser.screenshots LIBRARY_FOLDER`.

The folder holds `library`, with a few artifacts, something to review and an accepted book made of docs/design.md.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from tests.browser.conftest import ARGUMENTS, CHROMIUM
from tests.browser.driving import open_page, tab
from tests.ui.serving import ROOT, program

OUT = ROOT / "docs" / "screenshots"
LONG = 300_000
MODES: dict[str, dict[str, Any]] = {
    "": {"width": 1280, "height": 860},
    "-dark": {"width": 1280, "height": 860, "dark": True},
    "-narrow": {"width": 390, "height": 844},
}


def main(folder: Path) -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    with program(folder) as server, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        for mode, look in MODES.items():
            page, _ = open_page(browser, server.url, **look)
            _solve(page, mode)
            _review(page, mode)
            _books(page, mode)
            _library(page, mode)
            _lab(page, mode)
            _dashboard(page, mode)
            page.context.close()
        browser.close()


def _take(page: Any, name: str) -> None:
    page.mouse.move(0, 0)
    page.wait_for_timeout(700)
    page.screenshot(path=OUT / f"{name}.png", full_page=True)


def _solve(page: Any, mode: str) -> None:
    page.click("#example-1")
    page.wait_for_selector("#solve-offer .sc-verdict")
    page.click("#solve-go")
    page.wait_for_selector("#solve-live .sc-text:not(:empty)", timeout=LONG)
    page.wait_for_timeout(1500)
    _take(page, f"solve{mode}")
    if page.locator("#solve-cancel").is_visible():
        page.click("#solve-cancel")


def _review(page: Any, mode: str) -> None:
    tab(page, "Review")
    page.wait_for_selector("#review-head .sc-problem")
    _take(page, f"review{mode}")


def _books(page: Any, mode: str) -> None:
    tab(page, "Library")
    tab(page, "Books")
    page.click("#books-table tbody tr")
    page.fill("#books-question textarea", "What decides before any graft whether a stored state applies?")
    page.click("#books-ask")
    # When it is over, its progress gives way to the answer.
    page.wait_for_selector("#books-answer .sc-result", timeout=LONG)
    page.wait_for_selector("#books-cancel", state="hidden")
    _take(page, f"books{mode}")
    tab(page, "Artifacts")


def _library(page: Any, mode: str) -> None:
    page.click("#library-table tbody tr >> nth=1")
    page.wait_for_selector("#library-detail .sc-problem")
    _take(page, f"library{mode}")


def _lab(page: Any, mode: str) -> None:
    page.click("#library-graft")
    page.wait_for_function("document.querySelector('#lab-query textarea')?.value.length > 20")
    page.wait_for_timeout(800)
    page.click("#lab-number")
    page.wait_for_selector("#lab-judgement mark")
    page.click("#lab-run")
    page.wait_for_selector("#lab-runs .sc-run:nth-child(3) .sc-answer", timeout=LONG)
    _take(page, f"lab{mode}")
    page.click("#lab-label label:has-text('unsafe')")
    page.click("#lab-save")
    page.wait_for_selector("#lab-saved >> text=Labelled unsafe")


def _dashboard(page: Any, mode: str) -> None:
    tab(page, "Dashboard")
    page.wait_for_selector("#figure-saved .plot-container")
    page.wait_for_timeout(1500)
    _take(page, f"dashboard{mode}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
