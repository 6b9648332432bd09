"""A list of problems in a real browser: queued, watched, paused, resumed after a reload and after a restart, ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.driving import open_page, text
from tests.ui.serving import Server, served

pytestmark = pytest.mark.browser
ROWS = "".join(f'{{"problem": "Batch {n}: what is {n} + 1?", "answer": {n + 1}}}\n' for n in range(4))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("campaign")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    with served(folder, filled=False, pace=0.15, undo_seconds=60, attempts=2) as running:
        yield running


def queue(page: Any, rows: str = ROWS, name: str = "sums.jsonl") -> None:
    page.click("button:has-text('Many at once')")
    page.set_input_files("#batch-file input[type=file]", {"name": name, "mimeType": "", "buffer": rows.encode()})
    page.wait_for_selector(f"#batch-file >> text={name.rsplit('.')[0]}")
    page.click("#batch-go")


def states(server: Server) -> dict[str, int]:
    return dict(server.library.campaigns()[0].states)


def test_a_list_is_paused_resumed_after_a_reload_and_ended(browser: Any, server: Server) -> None:
    page, seen = open_page(browser, server.url)
    queue(page)
    page.wait_for_selector("#batch-status >> text=0 of 4 over")
    page.wait_for_selector("#batch-rows >> text=Batch 3: what is 3 + 1?")
    page.click("#batch-pause")
    page.wait_for_selector("#batch-resume", state="visible")
    page.reload()  # the list is the server's
    page.wait_for_selector("#batch-status >> text=sums.jsonl")
    page.wait_for_selector("#batch-status >> text=paused")
    assert states(server)["paused"] == 3
    page.click("#batch-rows tr:has-text('Batch 0')")
    page.wait_for_selector("#solve-status .sc-progress > .sc-line >> text=Solve")
    page.click("#batch-resume")
    page.wait_for_selector("#batch-pause", state="visible")
    page.click("#batch-stop")
    page.wait_for_selector("#batch-status >> text=4 of 4 over")
    page.wait_for_selector("#batch-stop", state="hidden")
    assert set(states(server)) <= {"cancelled", "done"}
    assert seen.errors == seen.outside == []
    page.context.close()


def test_a_bad_list_is_refused_by_its_line_and_nothing_is_queued(browser: Any, server: Server) -> None:
    page, _ = open_page(browser, server.url)
    before = len(server.library.jobs(limit=500))
    queue(page, ROWS + "{", "broken.jsonl")
    page.wait_for_selector("#solve-message >> text=line 5 is not JSON")
    assert len(server.library.jobs(limit=500)) == before
    page.context.close()


def test_a_list_outlives_the_server(browser: Any, tmp_path: Path) -> None:
    users = {"sol": "solver", "tom": "solver"}
    with served(tmp_path, filled=False, pace=0.3, users=users) as first:
        page, _ = open_page(browser, first.url, user="sol")
        queue(page, "problem,answer\n1+1?,2\n2+2?,4\n3+3?,6\n", "list.csv")
        page.wait_for_selector("#batch-status >> text=0 of 3 over")
        page.context.close()
        first.process.kill()
        first.process.wait()
    with served(tmp_path, filled=False, pace=0.001) as second:
        other, _ = open_page(browser, second.url, user="tom")
        assert "list.csv" not in other.content()  # another's list does not exist
        other.context.close()
        page, _ = open_page(browser, second.url, user="sol")
        page.wait_for_selector("#batch-status >> text=The server stopped meanwhile")
        page.click("#batch-resume")
        page.wait_for_selector("#batch-status >> text=3 of 3 over")
        page.wait_for_selector("#batch-rows tr:nth-child(3) >> text=right")
        assert "9" in text(page, "#batch-rows tbody tr:nth-child(2)")
        assert states(second) == {"done": 3}
        page.context.close()
