"""Behind a reverse proxy with a prefix: the login, its cookie, the guard that still stands, and the whole page in a
browser, which asks for nothing outside the prefix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from library.digest import digest_bytes
from tests.browser.driving import WAIT, log_in, ready, tab
from tests.browser.proxy import proxied
from tests.library.bundles import bundle
from tests.ui.serving import PASSWORD, Server, served

pytestmark = pytest.mark.browser
PREFIX = "/scion"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("proxy"), users={"ada": "admin"}, pace=0.05, root_path=PREFIX) as running:
        yield running


@pytest.fixture(scope="module")
def outside(server: Server) -> Iterator[str]:
    """The address by which the world sees the page."""
    with proxied(server.url, PREFIX) as address:
        yield address


@pytest.fixture
def client(outside: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=outside, trust_env=False, timeout=60) as opened:
        yield opened


def own_origin(outside: str) -> str:
    parts = urlsplit(outside)
    return f"{parts.scheme}://{parts.netloc}"


def test_the_guard_stands_behind_the_proxy(client: httpx.Client, outside: str) -> None:
    form = {"username": "ada", "password": PASSWORD}
    assert client.get("/", headers={"Host": "evil.example"}).status_code == 403
    assert client.post("/login", data=form, headers={"Origin": "http://evil.example"}).status_code == 403
    assert client.post("/login", data=form, headers={"Origin": own_origin(outside)}).status_code == 200
    assert client.cookies.get("scion_session")
    hidden = {"data": [], "fn_index": 0, "session_hash": "x"}
    foreign = {"Origin": "http://evil.example"}
    assert client.post("/gradio_api/queue/join", json=hidden, headers=foreign).status_code == 403
    client.cookies.clear()
    assert client.post("/gradio_api/queue/join", json=hidden).status_code == 401
    assert client.get("/config").status_code == 401


def test_the_cookie_is_for_the_prefix_and_for_https_where_that_is_spoken(client: httpx.Client) -> None:
    form = {"username": "ada", "password": PASSWORD}
    plain = client.post("/login", data=form).headers["set-cookie"]
    assert f"Path={PREFIX}" in plain
    assert "Secure" not in plain
    assert "Secure" in client.post("/login", data=form, headers={"X-Forwarded-Proto": "https"}).headers["set-cookie"]


@pytest.mark.parametrize("path", ["/artifacts/blake3:" + "0" * 64, "/gradio_api/file=/etc/hostname", "/mcp"])
def test_nothing_is_given_to_nobody(client: httpx.Client, path: str) -> None:
    assert client.get(path).status_code in (401, 403)


def test_without_users_the_world_behind_the_proxy_is_not_this_machine(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The proxy stands on this machine, but who asks by it does not: its word on that is believed."""
    with (
        served(tmp_path_factory.mktemp("alone"), filled=False, root_path=PREFIX) as running,
        proxied(running.url, PREFIX) as address,
    ):
        assert httpx.get(f"{address}/config", trust_env=False, timeout=60).status_code == 200
        far = {"X-Forwarded-For": "203.0.113.9"}
        assert httpx.get(f"{address}/config", headers=far, trust_env=False, timeout=60).status_code == 401


def inside(page: Any, outside: str) -> list[str]:
    """Addresses that the page asks for and that are not under the prefix; filled while the page lives."""
    left: list[str] = []
    page.on("request", lambda r: None if r.url.startswith((f"{outside}/", "blob:", "data:")) else left.append(r.url))
    return left


def arrive(browser: Any, address: str) -> tuple[Any, list[str]]:
    context = browser.new_context(viewport={"width": 1280, "height": 860})
    context.set_default_timeout(WAIT)
    page = context.new_page()
    left = inside(page, address.partition("?")[0].rstrip("/"))
    page.on("pageerror", lambda error: left.append(f"error: {error}"))
    page.on("response", lambda answer: left.append(f"{answer.status} {answer.url}") if answer.status >= 400 else None)
    page.goto(address)
    return page, left


def test_a_deep_link_goes_through_the_login_to_its_record(browser: Any, server: Server, outside: str) -> None:
    attempt = server.library.attempts(review="rejected")[0]
    page, left = arrive(browser, f"{outside}/?tab=review&id={attempt.id}")
    assert page.url.startswith(f"{outside}/login?")
    log_in(page, "ada")
    ready(page)
    page.wait_for_selector(f"#review-head >> text={attempt.id[:8]}")
    page.click("text=Log out")
    page.wait_for_selector("#username")
    assert page.url.startswith(f"{outside}/login")
    page.context.close()
    assert left == []


def test_solving_streams_through_the_proxy(browser: Any, outside: str) -> None:
    page, left = arrive(browser, f"{outside}/")
    log_in(page, "ada")
    ready(page)
    page.fill("#solve-problem textarea", "What is 7 and 2?")
    page.evaluate(
        """() => {
            window.seen = new Set();
            const look = () => seen.add(document.querySelector('#solve-live .sc-text')?.textContent || '');
            new MutationObserver(look).observe(document.body, {subtree: true, childList: true, characterData: true});
        }"""
    )
    page.click("#solve-go")
    page.wait_for_selector("#solve-review", state="visible")
    assert page.evaluate("seen.size") > 3, "the text came in one piece: the proxy's stream was held back"
    page.context.close()
    assert left == []


def test_files_go_both_ways_through_the_proxy(browser: Any, server: Server, outside: str) -> None:
    page, left = arrive(browser, f"{outside}/")
    log_in(page, "ada")
    ready(page)
    tab(page, "Library")
    page.click("#library-table tr:has-text('published') >> nth=0")
    page.wait_for_selector("#library-detail .sc-problem")
    digest = str(page.locator("#library-table .sc-chosen").get_attribute("data-key"))
    with page.expect_download() as artifact:
        page.click("#library-detail >> text=Download")
    assert str(digest_bytes(artifact.value.path().read_bytes())) == digest

    page.click("button:has-text('Import a bundle')")
    far = {"name": "from-afar.bundle", "mimeType": "", "buffer": bundle(2)}
    page.set_input_files("#import-file input[type=file]", far)
    page.wait_for_selector("#import-preview >> text=2 of 2 new")
    page.click("#import-accept")
    page.wait_for_selector("#import-preview >> text=Accepted: 2 artifacts are in the library")

    tab(page, "Dashboard")
    page.wait_for_selector("#figure-saved .plot-container")
    with page.expect_download() as table:
        page.click("a[aria-label='Hit rate as CSV']")
    assert table.value.path().read_text().startswith("date,asks,grafts,hit_rate")
    page.context.close()
    assert left == []
