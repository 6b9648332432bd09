"""Books in the browser, with written text in place of a model: build, stop, resume, accept, ask, refuse, by role."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.driving import build_book, open_page, text
from tests.ui.hostile import TEXTS
from tests.ui.serving import Server, served

pytestmark = pytest.mark.browser
USERS = {"ada": "admin", "ben": "reviewer", "sol": "solver", "sue": "solver", "val": "viewer"}
STORY = "\n\n".join(f"The code of vault v{number} is {number * 37}." for number in range(30))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("books"), filled=False, users=USERS, pace=0.02) as running:
        yield running


def shelf(browser: Any, server: Server, user: str, path: str = "/?tab=library&book=none") -> tuple[Any, Any]:
    page, seen = open_page(browser, server.url, path, user=user)
    page.wait_for_selector("#books-table .sc-tablewrap, #books-table .sc-empty")
    return page, seen


def ask(page: Any, question: str) -> None:
    page.fill("#books-question textarea", question)
    page.click("#books-ask")


def test_the_life_of_a_book(browser: Any, server: Server) -> None:
    page, seen = shelf(browser, server, "ada")
    hold = server.log.parent / "hold"
    hold.touch()
    build_book(page, "Vaults", STORY)
    page.wait_for_selector("#books-work >> text=segment 4 of 30")
    page.reload()  # the job goes on, and the page finds it again
    page.wait_for_selector("#books-work .sc-progress")
    page.click("#books-cancel")
    page.wait_for_selector("#books-work >> text=cancelled")
    hold.unlink()
    page.wait_for_selector("#books-table >> text=building")
    page.click("#books-table tbody tr")
    page.click("#books-resume")
    page.wait_for_selector("#books-work >> text=is pending")
    book = server.library.book("Vaults")
    assert server.library.count_segments(book.id) == 30

    page.wait_for_selector("#books-accept", state="visible")
    assert not page.locator("#books-question").is_visible()
    assert "addressable" in text(page, "#books-detail")
    assert "attended" in text(page, "#books-detail")
    page.click("#books-detail summary:has-text('Segments')")
    assert "vault v29" in text(page, "#books-detail")
    page.click("#books-accept")
    page.wait_for_selector("#books-message >> text=it answers now")
    assert server.library.book("Vaults").state == "accepted"

    ask(page, "What is the code of v7?")
    page.wait_for_selector("#books-answer .sc-answer")
    said = text(page, "#books-answer")
    start, length = STORY.index("The code of vault v7"), len("The code of vault v7 is 259.")
    assert f"segment 7, story.md, characters {start} to {start + length}" in said
    assert "unverified" in said
    ask(page, "What is the code of nothing?")
    page.wait_for_selector("#books-answer >> text=The book does not say")

    page.click("text=Keep small, take out of use")
    page.click("#books-pack")
    page.wait_for_selector("#books-work >> text=nothing lost")
    page.click("#books-drop")
    page.wait_for_selector("#books-work >> text=30 states dropped")
    page.click("#books-revoke")
    page.wait_for_selector("#books-message >> text=needs a reason")
    page.fill("#books-reason input, #books-reason textarea", "not ours to keep")
    page.click("#books-revoke")
    page.wait_for_selector("#books-message >> text=does not answer again")
    assert server.library.book("Vaults").state == "revoked"
    page.context.close()
    assert seen.errors == []
    assert seen.outside == []


def test_a_role_ends_where_it_ends(browser: Any, server: Server) -> None:
    viewer, _ = shelf(browser, server, "val")
    build_book(viewer, "Never", STORY)
    viewer.wait_for_selector("#books-message >> text=this needs the right to solve")
    viewer.context.close()

    solver, _ = shelf(browser, server, "sol")
    build_book(solver, "Sol's", "One short paragraph.\n\nAnd one more.")
    solver.wait_for_selector("#books-work >> text=is pending")
    solver.wait_for_selector("#books-accept", state="visible")
    solver.click("#books-accept")
    solver.wait_for_selector("#books-message >> text=this needs the right to review")
    assert server.library.book("Sol's").state == "pending"
    solver.context.close()

    other, _ = shelf(browser, server, "sue")
    build_book(other, "Sol's", "Something else.")
    other.wait_for_selector("#books-message >> text=belongs to sol")
    assert server.library.count_segments(server.library.book("Sol's").id) == 2
    other.context.close()

    reviewer, _ = shelf(browser, server, "ben", "/?tab=library&book=Sol's")
    reviewer.wait_for_selector("#books-refuse", state="visible")
    reviewer.click("#books-refuse")
    reviewer.wait_for_selector("#books-message >> text=needs a reason")
    reviewer.fill("#books-note input, #books-note textarea", "says nothing")
    reviewer.click("#books-refuse")
    reviewer.wait_for_selector("#books-message >> text=Refused")
    assert server.library.book("Sol's").state == "revoked"
    reviewer.context.close()
    assert [book.name for book in server.library.books() if book.name == "Never"] == []


def test_a_book_that_changed_is_not_accepted_by_who_saw_the_old_one(browser: Any, server: Server) -> None:
    page, _ = shelf(browser, server, "ada")
    build_book(page, "Shifting", "One.\n\nTwo.")
    page.wait_for_selector("#books-accept", state="visible")
    book = server.library.book("Shifting")
    server.library.update_book(book.id, digest="blake3:" + "0" * 64)
    page.click("#books-accept")
    page.wait_for_selector("#books-message >> text=Changed since you looked")
    assert server.library.book("Shifting").state == "pending"
    page.context.close()


def test_hostile_text_in_names_files_and_questions(browser: Any, server: Server) -> None:
    page, seen = shelf(browser, server, "ada")
    name = TEXTS[1][:90]
    build_book(page, name, "\n\n".join(TEXTS[:-1]), file="<img src=x onerror=window.__ran=1>.md")
    page.wait_for_selector("#books-accept", state="visible")
    page.click("#books-accept")
    page.wait_for_selector("#books-question", state="visible")
    page.click("#books-detail summary:has-text('Segments')")
    ask(page, f"{TEXTS[0]} {TEXTS[3]} evil?")
    page.wait_for_selector("#books-answer .sc-stats")
    assert TEXTS[0] in text(page, "#books-answer")
    page.goto(server.url + "/?tab=library&book=" + page.evaluate("encodeURIComponent", name))
    page.wait_for_selector("#books-detail .sc-book")
    assert page.evaluate("window.__ran") is None
    names = page.evaluate(
        "[...document.querySelectorAll('#books-table *, #books-detail *')].flatMap(e => e.getAttributeNames())"
    )
    assert not [attribute for attribute in names if attribute.startswith("on")]
    page.context.close()
    assert seen.outside == []
