"""Two people must approve: the second, the disagreement, and the third who decides it, each in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.driving import open_page, tab, text
from tests.ui.serving import Server, served

pytestmark = pytest.mark.browser
USERS = {"ada": "reviewer", "ben": "reviewer", "eve": "admin"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("second"), users=USERS, second_approver=True, undo_seconds=60) as running:
        yield running


def review(browser: Any, server: Server, user: str, attempt: str) -> Any:
    page, _ = open_page(browser, server.url, f"/?tab=review&id={attempt}", user=user)
    page.wait_for_selector(f"#review-head >> text={attempt[:8]}")
    return page


def show(page: Any, name: str) -> None:
    page.click("#review-filter input")
    page.click(f"ul[role=listbox] >> text={name}")


def test_a_disagreement_goes_to_a_third_person(browser: Any, server: Server) -> None:
    library = server.library
    attempt = library.attempts(review="pending")[0].id
    ada = review(browser, server, "ada", attempt)
    ada.keyboard.press("a")
    ada.wait_for_selector("#review-message >> text=a second reviewer must approve")
    assert ada.locator("#review-publish").is_hidden()
    ada.wait_for_selector("#review-counts >> text=one approval")
    assert ada.locator(f"#review-queue [data-key='{attempt}']").count() == 0  # hers no more
    show(ada, "Awaiting")
    ada.wait_for_selector(f"#review-queue [data-key='{attempt}'] >> text=awaits another")

    ben = review(browser, server, "ben", attempt)
    assert "Hidden until you decide" in text(ben, "#review-history")
    assert "one approval" not in text(ben, "#review-head")  # he decides without knowing
    ben.fill("#review-note textarea, #review-note input", "adds where it should subtract")
    ben.click("#review-reject")
    ben.wait_for_selector("#review-message >> text=a third person decides")
    assert library.attempt(attempt).review == "pending"
    assert library.attempt(attempt).staged is not None

    eve, _ = open_page(browser, server.url, user="eve")
    tab(eve, "Review")
    eve.wait_for_selector("#review-counts >> text=disagreement")
    assert eve.locator(f"#review-queue [data-key='{attempt}']").count() == 0
    show(eve, "Disputed")
    eve.click(f"#review-queue [data-key='{attempt}']")
    eve.wait_for_selector("#review-message >> text=Two reviewers disagree")
    said = text(eve, "#review-history")
    assert "ada" in said
    assert "adds where it should subtract" in said
    eve.keyboard.press("a")
    eve.wait_for_selector("#review-message >> text=published in 60 s unless undone")
    assert library.attempt(attempt).review == "approved"
    words = [(d.reviewer, d.action) for d in library.decisions(attempt)]
    assert words == [("ada", "approve"), ("ben", "reject"), ("eve", "approve")]
    eve.wait_for_selector("#review-queue >> text=Nothing to review here")
    for page in (ada, ben, eve):
        page.context.close()


def test_a_first_approval_that_was_undone_does_not_count(browser: Any, server: Server) -> None:
    attempt = server.library.attempts(review="pending")[0].id
    ada = review(browser, server, "ada", attempt)
    ada.keyboard.press("a")
    ada.wait_for_selector("#review-message >> text=a second reviewer must approve")
    ada.keyboard.press("u")
    ada.wait_for_selector("#review-message >> text=is taken back")
    ada.wait_for_selector(f"#review-queue [data-key='{attempt}']")
    ben = review(browser, server, "ben", attempt)
    ben.keyboard.press("a")
    ben.wait_for_selector("#review-message >> text=a second reviewer must approve")
    assert server.library.attempt(attempt).review == "pending"
    for page in (ada, ben):
        page.context.close()
