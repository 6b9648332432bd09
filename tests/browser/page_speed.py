"""Decode speed with the page open against without, in one run, and what the page costs the server.

`python -m tests.browser.page_speed [ROUNDS]` starts the real program and lets it solve the same problem with the same
seed again and again: submitted by the page, which streams it in a real Chromium, and by the API with no page open. The
order alternates. Chromium runs on the same machine and takes its part of it.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from playwright.sync_api import sync_playwright

from tests.browser.conftest import ARGUMENTS, CHROMIUM
from tests.browser.driving import open_page
from tests.ui.serving import Server, program

PROBLEM = "Write down the numbers from one to five hundred, each with its square."
ATTEMPTS, TOKENS = 1, 256
MODEL_THREADS = 2  # the worker and torch's other thread: the busiest of the server


@dataclass(frozen=True)
class Run:
    """One solve: tokens a second, and cores that the server used for anything but the model."""

    speed: float
    cores: float


def solved(client: Any, server: Server, start: Any) -> Run:
    """`start` submits the problem. Looks once a second, and only for the end."""
    process = psutil.Process(server.process.pid)
    before = {thread.id: thread.user_time + thread.system_time for thread in process.threads()}
    begun = time.monotonic()
    job = start()
    while True:
        seen = client.predict(job=job, api_name="/job")
        if seen["over"]:
            break
        time.sleep(1)
    wall = time.monotonic() - begun
    after = {thread.id: thread.user_time + thread.system_time for thread in process.threads()}
    spent = sorted(after[thread] - before.get(thread, 0.0) for thread in after)
    return Run(seen["progress"]["tokens"] / seen["progress"]["seconds"], sum(spent[:-MODEL_THREADS]) / wall)


def main(rounds: int) -> None:
    from gradio_client import Client

    os.environ["SCION_ATTEMPTS"], os.environ["SCION_MAX_TOKENS"] = str(ATTEMPTS), str(TOKENS)
    with (
        tempfile.TemporaryDirectory() as folder,
        program(Path(folder)) as server,
        sync_playwright() as driver,
    ):
        client = Client(server.url, verbose=False)
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)

        def by_api() -> str:
            said = client.predict(problem=PROBLEM, attempts=ATTEMPTS, max_tokens=TOKENS, api_name="/submit")
            return str(said["job"])

        def by_page(page: Any) -> str:
            known = {view.id for view in server.library.jobs(limit=50)}
            page.click("#solve-go")
            while True:
                for view in server.library.jobs(limit=50):
                    if view.id not in known:
                        return str(view.id)
                time.sleep(0.05)

        def with_page() -> Run:
            page, _ = open_page(browser, server.url)
            page.fill("#solve-problem textarea", PROBLEM)
            page.wait_for_timeout(2000)
            try:
                run = solved(client, server, lambda: by_page(page))
                page.wait_for_selector("#solve-status .sc-progress > .sc-line >> text=done")
                return run
            finally:
                page.context.close()

        solved(client, server, by_api)  # loads the model
        both: dict[str, list[Run]] = {"with": [], "without": []}
        for number in range(rounds):
            for name in ("with", "without") if number % 2 else ("without", "with"):
                run = with_page() if name == "with" else solved(client, server, by_api)
                both[name].append(run)
                print(f"{name:8} {run.speed:6.2f} tokens/s, {run.cores:.3f} cores beside the model", flush=True)
        browser.close()
    speed = {name: statistics.median(run.speed for run in runs) for name, runs in both.items()}
    cores = {name: statistics.median(run.cores for run in runs) for name, runs in both.items()}
    ratios = [a.speed / b.speed for a, b in zip(both["with"], both["without"], strict=True)]
    print(f"median of {rounds}: {speed['with']:.2f} with the page, {speed['without']:.2f} without: "
          f"{speed['with'] / speed['without']:.3f} (each round: {min(ratios):.3f} to {max(ratios):.3f}); "
          f"the page's work {cores['with'] - cores['without']:.3f} cores of the server")  # fmt: skip


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
