"""Several people at one library: logins, roles, one queue."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from tests.browser.driving import log_in, open_page, ready, tab, text
from tests.ui.serving import Server, served

pytestmark = pytest.mark.browser
USERS = {"ada": "admin", "ben": "reviewer", "sol": "solver", "val": "viewer"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("users"), users=USERS, pace=0.1) as running:
        yield running


def current(page: Any) -> str:
    return str(page.locator("#review-queue .sc-chosen").get_attribute("data-key"))


def test_a_deep_link_survives_the_login(browser: Any, server: Server) -> None:
    attempt = server.library.attempts(review="rejected")[0]
    page = browser.new_context().new_page()
    page.goto(f"{server.url}/?tab=review&id={attempt.id}")
    assert "/login" in page.url
    log_in(page, "ada")
    ready(page)
    page.wait_for_selector(f"#review-head >> text={attempt.id[:8]}")
    assert "ada · admin" in text(page, "#top")
    page.click("text=Log out")
    page.wait_for_selector("#username")
    page.goto(server.url)
    assert "/login" in page.url
    page.context.close()


def test_a_wrong_password_says_so(browser: Any, server: Server) -> None:
    page = browser.new_context().new_page()
    page.goto(server.url)
    page.fill("#username", "ada")
    page.fill("#password", "wrong password")
    page.click("button[type=submit]")
    page.wait_for_selector("text=wrong name or password")
    page.context.close()


def test_two_reviewers_get_two_items_and_are_told_of_each_other(browser: Any, server: Server) -> None:
    ada, _ = open_page(browser, server.url, user="ada")
    tab(ada, "Review")
    ada.wait_for_selector("#review-head .sc-problem")
    hers = current(ada)
    ben, _ = open_page(browser, server.url, user="ben")
    tab(ben, "Review")
    ben.wait_for_selector("#review-head .sc-problem")
    assert current(ben) != hers
    assert "1 item with other reviewers" in text(ben, "#review-queue")
    ben.click(f"#review-queue [data-key='{hers}']")
    ben.wait_for_selector("#review-message >> text=With another reviewer")
    ada.keyboard.press("a")
    ada.wait_for_selector("#review-message >> text=Approved")
    ben.keyboard.press("a")
    ben.wait_for_selector("#review-message >> text=Changed since you looked")
    approvals = [d for d in server.library.decisions(hers) if d.action == "approve"]
    assert [d.reviewer for d in approvals] == ["ada"]
    ada.context.close()
    ben.context.close()


def test_earlier_decisions_are_hidden_until_one_has_decided(browser: Any, server: Server) -> None:
    attempt = server.library.attempts(review="pending")[-1]
    server.library.decide(attempt.id, version=attempt.version, reviewer="ada", action="note", reason="looks wrong")
    page, _ = open_page(browser, server.url, f"/?tab=review&id={attempt.id}", user="ben")
    page.wait_for_selector(f"#review-head >> text={attempt.id[:8]}")
    assert "Hidden until you decide" in text(page, "#review-history")
    assert "looks wrong" not in page.content()
    page.fill("#review-note textarea, #review-note input", "I agree with the checks")
    page.click("button:has-text('Add note')")
    page.wait_for_selector("#review-history >> text=looks wrong")
    page.context.close()


@pytest.mark.parametrize(("user", "may_solve"), [("val", False), ("sol", True)])
def test_a_role_ends_where_it_ends(browser: Any, server: Server, user: str, may_solve: bool) -> None:
    page, _ = open_page(browser, server.url, user=user)
    page.fill("#solve-problem textarea", "How many are there?")
    page.click("#solve-go")
    if may_solve:
        page.wait_for_selector("#solve-status .sc-progress > .sc-line >> text=running")
        page.click("#solve-cancel")
    else:
        page.wait_for_selector("#solve-message >> text=this needs the right to solve")
    tab(page, "Review")
    page.wait_for_selector("#review-head .sc-problem")
    before = server.library.review_counts()
    for _ in range(20):  # a key that is pressed while the tab still settles goes nowhere
        page.keyboard.press("a")
        with contextlib.suppress(PlaywrightTimeout):
            page.wait_for_selector("#review-message >> text=this needs the right to review", timeout=3000)
            break
    page.wait_for_selector("#review-message >> text=this needs the right to review")
    assert server.library.review_counts() == before
    page.context.close()


def test_a_solver_sees_no_job_of_another(browser: Any, server: Server) -> None:
    ada, _ = open_page(browser, server.url, user="ada")
    ada.fill("#solve-problem textarea", "A secret of Ada's?")
    ada.click("#solve-go")
    ada.wait_for_selector("#solve-status .sc-progress > .sc-line >> text=running")
    ada.click("#solve-cancel")
    sol, _ = open_page(browser, server.url, user="sol")
    assert "A secret of Ada's?" not in sol.content()
    ada.context.close()
    sol.context.close()
