"""The page in a real browser, with written text in place of a model: keys, undo, stale records, narrow and dark."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.driving import open_page, tab, text
from tests.ui.serving import Server, served

pytestmark = pytest.mark.browser
TABS = ("Solve", "Review", "Library", "Graft lab", "Dashboard")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("page"), pace=0.15) as running:
        yield running


@pytest.fixture
def page(browser: Any, server: Server) -> Iterator[Any]:
    opened, seen = open_page(browser, server.url)
    yield opened
    opened.context.close()
    assert seen.outside == []
    assert seen.errors == []


def review(page: Any) -> str:
    """Opens the Review tab; the short id of the attempt that is shown."""
    tab(page, "Review")
    page.wait_for_selector("#review-head .sc-problem")
    return current(page)


def current(page: Any) -> str:
    return str(page.locator("#review-queue .sc-chosen").get_attribute("data-key"))


def notice(page: Any, said: str) -> None:
    page.wait_for_selector(f"#review-message >> text={said}")


def test_reload_resumes_and_cancel_ends(page: Any) -> None:
    page.click("#example-2")
    page.wait_for_function("document.querySelector('#solve-problem textarea')?.value.length > 20")
    page.click("#solve-go")
    page.wait_for_selector("#solve-live .sc-text:not(:empty)")
    page.reload()
    page.wait_for_selector("#solve-live .sc-text:not(:empty)")
    assert "running" in text(page, "#solve-status")
    page.click("#solve-cancel")
    page.wait_for_selector("#solve-status .sc-progress > .sc-line >> text=cancelled")
    assert page.locator("#solve-cancel").is_hidden()


def test_an_empty_problem_is_refused_in_words(page: Any) -> None:
    page.click("#solve-go")
    page.wait_for_selector("#solve-message >> text=the problem is empty")


def test_a_job_waits_for_its_place(page: Any, browser: Any, server: Server) -> None:
    page.fill("#solve-problem textarea", "First in the queue?")
    page.click("#solve-go")
    page.wait_for_selector("#solve-status .sc-progress > .sc-line >> text=running")
    other, _ = open_page(browser, server.url)
    other.fill("#solve-problem textarea", "Second in the queue?")
    other.click("#solve-go")
    other.wait_for_selector("#solve-status .sc-progress > .sc-line >> text=waiting, 1 job before it")
    page.click("#solve-cancel")
    other.wait_for_selector("#solve-status .sc-progress > .sc-line >> text=running")
    other.click("#solve-cancel")
    other.wait_for_selector("#solve-status .sc-progress > .sc-line >> text=cancelled")
    other.context.close()


def test_my_jobs_are_listed_and_can_be_opened_again(page: Any) -> None:
    page.fill("#solve-problem textarea", "Remember this one?")
    page.click("#solve-ask")
    page.wait_for_selector("#solve-result .sc-verdict")
    page.reload()
    page.wait_for_selector("#solve-jobs >> text=Remember this one?")
    page.fill("#solve-problem textarea", "And another?")
    page.click("#solve-go")
    page.wait_for_selector("#solve-status .sc-progress > .sc-line >> text=running")
    page.click("#solve-jobs tr:has-text('Remember this one?')")
    page.wait_for_selector("#solve-status .sc-progress > .sc-line >> text=done")
    page.wait_for_selector("#solve-jobs tr.sc-chosen:has-text('Remember this one?')")
    page.click("#solve-jobs tr:has-text('And another?')")
    page.wait_for_selector("#solve-jobs tr.sc-chosen:has-text('And another?')")
    if page.locator("#solve-cancel").is_visible():  # a loaded machine may be so slow that it is over by now
        page.click("#solve-cancel")


def test_keys_work_and_only_where_they_should(page: Any, server: Server) -> None:
    decided = len(server.library.attempts(review="approved", limit=500))
    first = review(page)
    page.keyboard.press("ArrowRight")
    page.wait_for_function(f"document.querySelector('#review-queue .sc-chosen').dataset.key !== '{first}'")
    page.keyboard.press("ArrowLeft")
    page.wait_for_function(f"document.querySelector('#review-queue .sc-chosen').dataset.key === '{first}'")
    page.keyboard.press("?")
    page.wait_for_selector("#review-keys kbd")
    # while typing
    page.fill("#review-note textarea, #review-note input", "")
    page.focus("#review-note textarea, #review-note input")
    page.keyboard.type("afsr?")
    assert page.input_value("#review-note textarea, #review-note input") == "afsr?"
    # with a modifier, and from another tab
    page.click("#review-head .sc-problem")
    page.keyboard.press("Control+a")
    tab(page, "Library")
    page.wait_for_selector("#library-table tbody tr")
    for key in "afsr":
        page.keyboard.press(key)
    page.wait_for_timeout(700)
    assert len(server.library.attempts(review="approved", limit=500)) == decided
    assert server.library.decisions(first) == []


def test_rejecting_needs_a_reason(page: Any, server: Server) -> None:
    attempt = review(page)
    page.fill("#review-note textarea, #review-note input", "")
    page.click("#review-reject")
    notice(page, "a rejection needs a reason")
    assert server.library.attempt(attempt).review == "pending"
    page.fill("#review-note textarea, #review-note input", "adds where it should subtract")
    page.click("#review-reject")
    notice(page, "Rejected")
    assert server.library.attempt(attempt).review == "rejected"
    assert server.library.decisions(attempt)[-1].reason == "adds where it should subtract"
    # the note does not stay for the next record
    assert page.input_value("#review-note textarea, #review-note input") == ""
    assert current(page) != attempt


def test_an_approval_can_be_undone_before_it_is_published(page: Any, server: Server) -> None:
    held = server.library.index.count()
    attempt = review(page)
    page.keyboard.press("a")
    notice(page, "Approved")
    assert server.library.attempt(attempt).review == "approved"
    page.keyboard.press("u")
    page.wait_for_selector("#review-message strong:text-is('Undone')")  # the approval's notice says "undone" too
    assert server.library.attempt(attempt).review == "pending"
    assert server.library.index.count() == held
    assert [d.action for d in server.library.decisions(attempt)] == ["approve", "undo"]


def test_flag_skip_and_note(page: Any, server: Server) -> None:
    attempt = review(page)
    page.fill("#review-note textarea, #review-note input", "odd wording")
    page.click("button:has-text('Add note')")
    notice(page, "Noted")
    page.keyboard.press("f")
    notice(page, "Flagged")
    assert server.library.attempt(attempt).review == "flagged"
    page.keyboard.press("s")
    notice(page, "Skipped")
    assert current(page) != attempt
    assert [d.action for d in server.library.decisions(attempt)][-3:] == ["note", "flag", "skip"]


def test_a_decision_on_a_changed_record_is_refused(page: Any, server: Server) -> None:
    attempt = review(page)
    row = server.library.attempt(attempt)
    server.library.decide(attempt, version=row.version, reviewer="ben", action="note", reason="meanwhile")
    page.keyboard.press("a")
    notice(page, "Changed since you looked")
    assert server.library.attempt(attempt).review in ("pending", "flagged")
    page.wait_for_selector("#review-history >> text=meanwhile")
    page.keyboard.press("a")  # now seen: allowed
    notice(page, "Approved")


def test_the_library_is_searched_filtered_sorted_and_chosen_from(page: Any, server: Server) -> None:
    tab(page, "Library")
    page.wait_for_selector("#library-table tbody tr")
    page.fill("#library-search textarea, #library-search input", "cards")
    page.keyboard.press("Enter")
    page.click("#library-order input")
    page.click("ul[role=listbox] >> text=Largest")
    page.wait_for_timeout(800)
    rows = page.locator("#library-table tbody tr")
    key = rows.nth(1).get_attribute("data-key")
    rows.nth(1).click()
    page.wait_for_selector("#library-detail .sc-problem")
    assert server.library.artifact(key).problem_text in text(page, "#library-detail")
    page.fill("#library-search textarea, #library-search input", "nothing like this")
    page.keyboard.press("Enter")
    page.wait_for_selector("#library-table >> text=Nothing matches")
    page.fill("#library-search textarea, #library-search input", key.removeprefix("blake3:")[:10])
    page.keyboard.press("Enter")
    page.wait_for_selector("#library-table tbody tr:only-child")


def test_revoking_needs_a_reason_and_is_for_good(page: Any, server: Server) -> None:
    tab(page, "Library")
    page.click("#library-table tbody tr >> nth=-1")
    page.wait_for_selector("#library-detail .sc-problem")
    digest = page.locator("#library-table .sc-chosen").get_attribute("data-key")
    page.click("button:has-text('Take out of use')")
    page.click("#library-revoke")
    page.wait_for_selector("#library-message >> text=a revocation needs a reason")
    page.fill("#library-reason textarea, #library-reason input", "the answer is wrong")
    page.click("#library-revoke")
    page.wait_for_selector("#library-message >> text=Revoked")
    assert server.library.artifact(digest).state == "revoked"
    assert server.library.artifact(digest).state_reason == "the answer is wrong"


def test_a_chat_goes_on_from_the_state(page: Any) -> None:
    tab(page, "Library")
    page.click("#library-table tbody tr >> nth=0")
    page.wait_for_selector("#library-detail .sc-problem")
    page.wait_for_timeout(500)
    page.click("button:has-text('Continue from this state')")
    page.fill("#library-say textarea, #library-say input", "Explain the last step.")
    page.click("#library-send")
    page.wait_for_selector("#library-chat >> text=The answer is")
    page.wait_for_selector("#library-work >> text=reading the text again takes")


def test_the_dashboard_looks_at_the_days_that_are_given(page: Any) -> None:
    tab(page, "Dashboard")
    page.wait_for_selector("#figure-verdicts .plot-container")
    page.click("#dashboard-range label:has-text('Dates')")
    page.fill("#dashboard-first textarea, #dashboard-first input", "2001-01-01")
    page.fill("#dashboard-last textarea, #dashboard-last input", "2001-01-31")
    page.keyboard.press("Enter")
    page.wait_for_selector("#dashboard-blanks >> text=Verdicts of the gate")
    page.wait_for_selector("#figure-verdicts", state="hidden")
    assert page.locator("#figure-artifacts .plot-container").is_visible()  # these are as of now
    page.fill("#dashboard-last textarea, #dashboard-last input", "2000-01-31")
    page.keyboard.press("Enter")
    page.wait_for_selector("#dashboard-tiles >> text=is before the first")
    page.fill("#dashboard-last textarea, #dashboard-last input", "")
    page.keyboard.press("Enter")
    page.wait_for_selector("#figure-verdicts .plot-container")
    link = page.get_attribute("a[aria-label='Verdicts of the gate as CSV']", "href")
    assert link.endswith("/figures/verdicts.csv?days=Dates&first=2001-01-01&last=")


RECORD = """
(() => {
  const send = window.fetch.bind(window);
  window.joins = [];
  window.fetch = async (input, init) => {
    if (!String(input.url ?? input).includes("/queue/join")) return send(input, init);
    const join = {sent: performance.now(), answered: Infinity};
    window.joins.push(join);
    const answer = await send(input, init);
    if (window.joins.length === 1) await new Promise((resolve) => setTimeout(resolve, 700));
    join.answered = performance.now();
    return answer;
  };
})();
"""


def test_what_is_asked_first_reaches_the_server_first(page: Any) -> None:
    page.add_init_script(RECORD)
    page.reload()
    page.wait_for_function("window.joins.length > 4 && window.joins.every((join) => join.answered < Infinity)")
    joins = page.evaluate("window.joins")
    for one, following in itertools.pairwise(joins):
        assert following["sent"] >= one["answered"]


FRAMES = """
(() => {
  const frame = window.requestAnimationFrame.bind(window);
  window.framed = performance.now();
  window.requestAnimationFrame = (callback) => { window.framed = performance.now(); return frame(callback); };
})();
"""


def test_a_page_that_waits_for_nothing_draws_nothing(page: Any) -> None:
    """Gradio's clock of waiting events goes on for good once a component was hidden while it waited."""
    page.add_init_script(FRAMES)
    page.reload()
    page.wait_for_selector(".sc-top-facts")
    for name in ("Review", "Dashboard", "Solve"):
        tab(page, name)
        page.wait_for_function("performance.now() - window.framed > 1500", polling=250)


def test_links_lead_to_a_record(page: Any, server: Server) -> None:
    attempt = server.library.attempts(review="rejected")[0]
    page.goto(f"{server.url}/?tab=review&id={attempt.id}")
    page.wait_for_selector(f"#review-head >> text={attempt.id[:8]}")
    artifact = server.library.index.artifacts(states=["published"])[0]
    page.goto(f"{server.url}/?tab=library&id={artifact.digest}")
    page.wait_for_selector(f"#library-detail >> text={artifact.digest[7:15]}")


@pytest.mark.parametrize("name", TABS)
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_wider_than_the_window(browser: Any, server: Server, width: int, name: str) -> None:
    page, seen = open_page(browser, server.url, width=width)
    tab(page, name)
    page.wait_for_timeout(1500)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert seen.outside == []
    page.context.close()


@pytest.mark.parametrize("dark", [False, True])
def test_light_and_dark_follow_the_system_and_the_button(browser: Any, server: Server, dark: bool) -> None:
    page, _ = open_page(browser, server.url, dark=dark)
    ground = "getComputedStyle(document.body).backgroundColor"
    first = page.evaluate(ground)
    page.click("[data-theme-toggle]")
    page.wait_for_function(f"{ground} !== '{first}'")
    page.reload()
    page.wait_for_selector(".sc-top-facts")
    page.wait_for_function(f"{ground} !== '{first}'")
    page.context.close()
