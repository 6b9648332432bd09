"""What the browser tests do again and again: open the page, change tabs, watch what it asks for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from tests.ui.serving import PASSWORD

WAIT = 60_000  # milliseconds; a loaded machine is slow, a wrong page stays wrong


@dataclass
class Seen:
    """What happened in a browser page: addresses outside the server, errors that nobody caught."""

    outside: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def open_page(
    browser: Any, url: str, path: str = "/", *, width: int = 1280, height: int = 860, dark: bool = False, user: str = ""
) -> tuple[Any, Seen]:
    """A page in a fresh profile, filled; logged in as `user` if given."""
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light")
    context.set_default_timeout(WAIT)
    page, seen = context.new_page(), Seen()
    own = urlsplit(url).netloc

    def asked(request: Any) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.netloc != own:
            seen.outside.append(request.url)

    page.on("request", asked)
    page.on("pageerror", lambda error: seen.errors.append(str(error)))
    page.goto(url + path)
    if user:
        log_in(page, user)
    ready(page)
    return page, seen


def log_in(page: Any, user: str) -> None:
    page.fill("#username", user)
    page.fill("#password", PASSWORD)
    page.click("button[type=submit]")


def ready(page: Any) -> None:
    page.wait_for_selector(".sc-top-facts")


def tab(page: Any, name: str) -> None:
    """Selects a tab; on a narrow page it may be in the menu of those that do not fit."""
    found = page.get_by_role("tab", name=name, exact=True)
    if found.count() and found.first.is_visible():
        found.first.click()
        return
    page.locator(".overflow-menu > button").first.click()
    page.locator(".overflow-dropdown button", has_text=name).click()


def text(page: Any, selector: str) -> str:
    """The visible text of the first match, on one line."""
    return " ".join(page.locator(selector).first.inner_text().split())


def build_book(page: Any, name: str, content: str, file: str = "story.md") -> None:
    """Uploads a text on the open Books view and starts to build it."""
    page.fill("#books-name input, #books-name textarea", name)
    given = {"name": file, "mimeType": "text/markdown", "buffer": content.encode()}
    page.set_input_files("#books-files input[type=file]", [given])
    page.wait_for_selector("#books-files .file-preview")
    page.click("#books-build")
