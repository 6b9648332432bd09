from __future__ import annotations

import csv
import io
import subprocess
import sys
from dataclasses import replace

import pytest

from library.statistics import Agreement, Day, ReviewDay, Reviewer, Statistics
from tests.ui.hostile import TEXTS
from tests.ui.label import label_of
from ui import plots


def numbers(days: tuple[Day, ...] = ()) -> Statistics:
    held, reviewers = (("published", 3), ("revoked", 1)), (Reviewer("ada", 4, 2), Reviewer("=cmd()", 1, 0))
    return Statistics("", "", held, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, None, 0, (), reviewers, 0, 0, days)


DAYS = (Day("2026-01-01", 4, 3, 0, 1, 0, 90, 4.5), Day("2026-01-02", 2, 1, 1, 0, 1, 30, 1.25))


def rows(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def test_what_is_saved_adds_up() -> None:
    table = plots.saved(numbers(DAYS))
    assert table.rows == (("2026-01-01", 90, 4.5, 90, 4.5), ("2026-01-02", 30, 1.25, 120, 5.75))
    assert rows(table.csv())[0] == ["date", "tokens_saved", "seconds_saved", "tokens_total", "seconds_total"]


def test_a_figure_shows_the_numbers_of_its_csv() -> None:
    table = plots.verdicts(numbers(DAYS))
    chart = plots.figure(table)
    drawn = {trace.name: list(trace.y) for trace in chart.data}
    assert drawn == {"graft": [3, 1], "transfer": [0, 1], "refuse": [1, 0]}
    assert [row[1] for row in rows(table.csv())[1:]] == ["3", "1"]


@pytest.mark.parametrize("make", [plots.saved, plots.verdicts])
def test_nothing_to_draw_is_no_figure(make: object) -> None:
    assert plots.figure(make(numbers())) is None  # type: ignore[operator]


@pytest.mark.parametrize("table", [plots.holdings(numbers()), plots.reviewers(numbers()), plots.saved(numbers(DAYS))])
def test_figures_are_readable_on_light_and_dark(table: plots.Table) -> None:
    layout = plots.figure(table).layout
    assert layout.paper_bgcolor == layout.plot_bgcolor == "rgba(0,0,0,0)"


def test_hits_review_and_agreement_have_their_figures() -> None:
    seen = replace(
        numbers(DAYS),
        review_days=(ReviewDay("2026-01-01", 3, 1, 0, 2),),
        agreements=(Agreement("ada", "bob", 5, 1),),
    )
    assert plots.hits(seen).rows == (("2026-01-01", 4, 3, 0.75), ("2026-01-02", 2, 1, 0.5))
    assert plots.reviews(seen).rows == (("2026-01-01", 3, 1, 0, 2),)
    assert plots.agreement(seen).rows == (("ada & bob", 5, 1),)
    drawn = {trace.name: list(trace.x) for trace in plots.figure(plots.agreement(seen)).data}
    assert drawn == {"agreed": [5], "disagreed": [1]}
    assert [trace.name for trace in plots.figure(plots.hits(seen)).data] == ["asks", "hit rate"]
    assert seen.agreement == 5 / 6


def test_labels_are_counted_by_source() -> None:
    items = [label_of("a", "b", name) for name in ("safe", "unsafe", "unsafe", "unsure")]
    assert plots.labels(items).rows == (("graft-lab", 1, 2, 1),)


@pytest.mark.parametrize("hostile", [*TEXTS, "=1+1", "+1", "-1", "@x", "\tx"])
def test_a_spreadsheet_finds_no_formula(hostile: str) -> None:
    cell = rows(plots.Table("t", "t", ("a",), ((hostile,),)).csv())[1][0]
    assert cell[:1] not in ("=", "+", "-", "@", "\t")
    assert hostile in cell


def test_numbers_stay_numbers() -> None:
    assert plots.Table("t", "t", ("a", "b"), ((-3, -1.5),)).csv() == "a,b\r\n-3,-1.5\r\n"


def test_rendering_access_and_plots_import_no_gradio() -> None:
    code = (
        "import sys, ui.access, ui.guard, ui.plots, ui.period, ui.render.jobs, ui.render.records, ui.render.artifact, "
        "ui.render.lab, ui.render.figures, ui.render.prose\n"
        "loaded = {'gradio', 'torch', 'transformers', 'plotly'} & set(sys.modules)\n"
        "assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
