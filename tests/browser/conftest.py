"""A real browser. Skipped, with the reason, where Chromium is not installed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="the browser tests need the package playwright")
CHROMIUM = os.environ.get("SCION_CHROMIUM") or next(
    (
        path
        for path in ("/usr/bin/chromium", shutil.which("chromium"), shutil.which("google-chrome"))
        if path and Path(path).exists()
    ),
    None,
)
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


# Not for the whole session: while Playwright's synchronous driver is open, an event loop runs in this thread, and no
# later test could start one of its own.
@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("the browser tests need Chromium; set SCION_CHROMIUM to its path")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield running
        running.close()
