"""Bundles in a real browser: a damaged one is refused with its reason, a good one accepted, kept to decide, refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from library.exchange import preview_bundle
from tests.browser.driving import open_page, tab, text
from tests.library.bundles import blobs, bundle, entries
from tests.ui.serving import Server, served

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("carry")) as running:
        yield running


@pytest.fixture
def page(browser: Any, server: Server) -> Iterator[Any]:
    opened, seen = open_page(browser, server.url)
    tab(opened, "Library")
    opened.wait_for_selector("#library-table tbody tr")
    opened.click("button:has-text('Import a bundle')")
    yield opened
    opened.context.close()
    assert seen.outside == []
    assert seen.errors == []


def pick(page: Any, data: bytes, name: str = "from-afar.bundle") -> None:
    page.set_input_files("#import-file input[type=file]", {"name": name, "mimeType": "", "buffer": data})


def total(server: Server) -> int:
    return server.library.index.count()


@pytest.mark.parametrize("place", ["a flipped byte", "cut short", "another file"])
def test_a_damaged_bundle_is_refused_with_its_reason(page: Any, server: Server, place: str) -> None:
    before, good = total(server), bundle()
    middle = len(good) // 2
    damaged = {
        "a flipped byte": good[:middle] + bytes([good[middle] ^ 1]) + good[middle + 1 :],
        "cut short": good[:middle],
        "another file": b"a letter, not a bundle" * 100,
    }[place]
    pick(page, damaged)
    page.wait_for_selector("#import-preview >> text=Refused: the bundle is damaged or not one")
    reason = text(page, "#import-preview")
    assert "Nothing of it came into the library" in reason
    assert len(reason) > len("Refused: the bundle is damaged or not one Nothing of it came into the library.") + 10
    assert page.locator("#import-accept").is_hidden()
    assert total(server) == before


def test_a_bundle_is_refused_kept_and_accepted(page: Any, server: Server) -> None:
    before = total(server)
    pick(page, bundle(2))
    page.wait_for_selector("#import-preview >> text=2 of 2 new")
    page.click("#import-refuse")
    page.wait_for_selector("#import-preview >> text=Refused: nothing of the bundle")
    assert total(server) == before

    pick(page, bundle(2), "again.bundle")
    page.wait_for_selector("#import-preview >> text=2 of 2 new")
    page.click("#import-keep")
    page.wait_for_selector("#import-preview >> text=2 artifacts are here as")
    page.wait_for_selector("#library-table tr:has-text('imported')")
    page.click("#library-table tr:has-text('imported') >> nth=0")
    page.wait_for_selector("#library-decide >> text=not used until a person accepts it")
    chosen = str(page.locator("#library-table .sc-chosen").get_attribute("data-key"))
    page.click("#library-refuse")
    page.wait_for_selector("#library-message >> text=a refusal needs a reason")
    page.click("#library-accept")
    page.wait_for_selector("#library-message >> text=it may be grafted from now on")
    page.wait_for_selector("#library-decide", state="hidden")
    assert server.library.artifact(chosen).state == "published"
    page.click("#library-table tr:has-text('imported') >> nth=0")
    page.wait_for_selector("#library-decide >> text=not used until a person accepts it")
    page.fill("#library-decide-reason textarea, #library-decide-reason input", "a test's artifact")
    page.click("#library-refuse")
    page.wait_for_selector("#library-message >> text=it will not be grafted")

    pick(page, bundle(entries=entries(blobs(3)[2:])), "third.bundle")
    page.wait_for_selector("#import-preview >> text=1 of 1 new")
    page.click("#import-accept")
    page.wait_for_selector("#import-preview >> text=Accepted: 1 artifact is in the library")
    assert total(server) == before + 3
    pick(page, bundle(2), "known.bundle")
    page.wait_for_selector("#import-preview >> text=All of it is here already")


def test_an_export_is_a_bundle_that_can_be_imported(page: Any, server: Server) -> None:
    page.click("#library-table tr:has-text('published') >> nth=0")
    page.wait_for_selector("#library-detail .sc-problem")
    page.click("button:has-text('Export a bundle')")
    sizes = {}
    for choice in ("All published", "The chosen one"):
        page.click(f"#export-what label:has-text('{choice}')")
        said = "1 artifact" if choice == "The chosen one" else "artifacts"
        page.wait_for_selector(f"#export-link a:text-matches('{said}$')")
        with page.expect_download() as downloading:
            page.click("#export-link a")
        preview = preview_bundle(server.library, downloading.value.path())
        sizes[choice] = len(preview.incoming)
    assert sizes == {"All published": server.library.index.count(states=["published"]), "The chosen one": 1}


def test_the_certificate_is_measured_as_a_job(page: Any) -> None:
    page.click("#library-table tr:has-text('published') >> nth=0")
    page.wait_for_selector("#library-detail .sc-problem")
    page.click("#library-certify")
    page.wait_for_selector("#library-work >> text=Certificate: byte-exact")
    page.click("#library-audit")
    page.wait_for_selector("#library-work >> text=Replay audit: reproduced")
