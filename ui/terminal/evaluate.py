"""Commands of the experiments. `gate` needs no model and imports no torch; the others use libraries of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ui.terminal.common import plain, session
from ui.terminal.context import context_command
from ui.terminal.experiments import (
    about_run,
    file_digest,
    load_model,
    make_plan,
    need_some,
    one_of,
    read_policy,
    recurrence_words,
    speaker,
    state_folder,
    use_preset,
)

if TYPE_CHECKING:
    from core.evaluate.calibrating import Source

app = typer.Typer(no_args_is_help=True, help="Experiments, with a JSON report; they never touch your library.")
app.command("context")(context_command)

PairsFile = Annotated[Path, typer.Option("--pairs", help="JSON lines with base_question and variant_question")]
JsonFile = Annotated[Path | None, typer.Option("--json", help="write the report to this file")]
StateFolder = Annotated[
    Path | None, typer.Option("--state", help="keep progress here: the same command continues a run that was stopped")
]
FiguresFolder = Annotated[Path | None, typer.Option("--figures", help="write Plotly figures (HTML) to this folder")]
Limit = Annotated[int | None, typer.Option(min=1, help="use only so many rows of the file")]
Attempts = Annotated[int | None, typer.Option(min=1, max=256, help="attempts at most to solve a problem (8)")]
MaxTokens = Annotated[int | None, typer.Option(min=1, help="token budget of one attempt")]
Temperature = Annotated[float | None, typer.Option(min=0.01, max=5, help="of the attempts; the rest is greedy")]
Seed = Annotated[int, typer.Option(help="seed of the attempts")]


@app.command()
def gate(
    context: typer.Context,
    pairs: PairsFile,
    policy: Annotated[str, typer.Option(help="strict, edits or calibrated")] = "strict",
    verdicts: Annotated[Path | None, typer.Option(help="write one line a pair: index, verdict, reasons")] = None,
    json_out: JsonFile = None,
) -> None:
    """Judge the pairs of a file, without a model: false accepts and coverage by kind."""
    from core.evaluate.gate import evaluate_gate
    from core.evaluate.report import markdown, write_json
    from core.gate import Policy

    state = session(context)
    chosen = read_policy(policy)
    calibration = None
    if chosen is Policy.CALIBRATED:
        from core.calibrations import read_calibration

        calibration = read_calibration(state.settings())
    say = speaker()
    found = evaluate_gate(
        pairs,
        chosen,
        verdicts=verdicts,
        calibration=calibration,
        progress=lambda done: say(f"{done} pairs") if done % 1000 == 0 else None,
    )
    report = json.loads(found.to_json())
    if json_out is not None:
        write_json(json_out, report)
    heads = ("role", "dataset", "kind", "pairs", "GRAFT", "TRANSFER", "REFUSE", "share of GRAFT, exact 95 %")
    rows = [
        (
            r.role,
            r.dataset,
            r.kind,
            r.pairs,
            r.graft,
            r.transfer,
            r.refuse,
            f"{100 * r.low:.1f} to {100 * r.high:.1f} %",
        )
        for r in (*found.rows, *found.noisy)
    ]
    words = [
        markdown(heads, rows),
        "",
        f"false accepts {found.false_accepts.hits} of {found.false_accepts.pairs}, "
        f"at most {100 * found.false_accepts.high:.2f} %; coverage {found.coverage.hits} of {found.coverage.pairs}",
        f"{found.pairs} pairs ({found.malformed} malformed), {found.pairs_per_second:.0f} a second",
    ]
    state.show(report, "\n".join(words))


@app.command()
def calibrate(
    context: typer.Context,
    pairs: Annotated[list[Path] | None, typer.Option(help="labelled pairs, JSON lines; may be repeated")] = None,
    labels: Annotated[bool, typer.Option("--labels", help="the labels that reviewers gave in the graft lab")] = False,
    delta: Annotated[float, typer.Option(help="most false accepts, at 95 % confidence")] = 0.005,
    out: Annotated[Path | None, typer.Option(help="calibration file, instead of the setting's")] = None,
) -> None:
    """Labels to the threshold of the calibrated policy; refuses, and says how many are missing, where they are few."""
    from datetime import UTC, datetime

    from core.calibrations import calibration_path
    from core.evaluate import calibrating
    from library.errors import UsageError
    from ui.terminal.common import actor, finish

    if not pairs and not labels:
        raise UsageError("give --pairs FILE, --labels, or both")
    if not 0 < delta < 1:
        raise UsageError("--delta must lie between 0 and 1")
    state = session(context)
    given = []
    if labels:
        with state.library() as library:
            given = library.labels()
    found = calibrating.run(pairs or [], given, delta)
    path = out or calibration_path(state.settings())
    created = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    calibrating.write(found, path, by=actor(), created=created)
    words = [found.calibration.explain(), *(_source_words(source) for source in found.sources)]
    words.append(f"written to {path}" if found.calibration.usable else "no calibration is written")
    state.show({**found.report(by=actor(), created=created), "file": str(path)}, "\n".join(words))
    finish(0 if found.calibration.usable else 1)


def _source_words(source: Source) -> str:
    return f"{source.kind} {source.name}: {source.different} different, {source.same} same, {source.unused} not used"


@app.command("near-miss")
def near_miss(
    context: typer.Context,
    pairs: Annotated[Path | None, typer.Option(help="JSON lines with base_question, base_answer, variant_…")] = None,
    problems: Annotated[Path | None, typer.Option(help="instead: problems of one operation, to make pairs of")] = None,
    limit: Limit = None,
    policy: Annotated[str, typer.Option(help="the gate's policy: strict or edits")] = "edits",
    attempts: Attempts = None,
    max_tokens: MaxTokens = None,
    temperature: Temperature = None,
    seed: Seed = 0,
    dataset: Annotated[list[str] | None, typer.Option(help="only pairs of this dataset; may be repeated")] = None,
    state: StateFolder = None,
    json_out: JsonFile = None,
    figures: FiguresFolder = None,
) -> None:
    """Answer variants of solved problems fresh, ungated and gated: wrong-answer and copy rates."""
    from core.evaluate import near_miss as experiment
    from core.evaluate.last import keep_last
    from core.evaluate.made import pairs_of
    from core.evaluate.near_miss_report import report, tables, write_figures
    from core.evaluate.pairs import read_pairs
    from core.evaluate.report import read_problems, write_json
    from library.audit import now

    told = session(context)
    chosen = read_policy(policy)
    file = one_of(pairs, problems)
    rows = read_pairs(file) if pairs is not None else pairs_of(read_problems(file), seed)
    selected = experiment.select(rows, limit=limit, datasets=dataset or ())
    need_some(selected, file, "pairs with role positive or negative and a base answer")
    say = speaker()
    with state_folder(state) as folder:
        settings = told.settings()
        model = load_model(settings, say)
        plan = make_plan(settings, attempts, max_tokens, temperature, seed)
        before = str(model.weights_digest())
        set_up = experiment.Experiment(plan, chosen)
        bases, variants = experiment.run(model, selected, set_up, folder, source_digest=file_digest(file), say=say)
        about = {
            **about_run(model, plan),
            "policy": str(chosen),
            "weights_digest_before": before,
            "weights_digest_after": str(model.weights_digest()),
        }
    found = report(bases, variants, about)
    keep_last(settings.library, found, now())
    if json_out is not None:
        write_json(json_out, found)
    if figures is not None:
        write_figures(figures, variants, model.name)
    head = f"{model.name}, policy {chosen}: {found['bases_solved']} of {found['bases']} bases solved\n\n"
    told.show(found, head + tables(variants))


@app.command()
def recurrence(
    context: typer.Context,
    problems: Annotated[Path, typer.Option(help="JSON lines with question and answer")],
    limit: Limit = None,
    attempts: Attempts = None,
    max_tokens: MaxTokens = None,
    temperature: Temperature = None,
    seed: Seed = 0,
    preset: Annotated[str | None, typer.Option(help="settings of a known experiment: aime2025")] = None,
    state: StateFolder = None,
    json_out: JsonFile = None,
    figures: FiguresFolder = None,
) -> None:
    """Ask problems again, without and with the library: accuracy, tokens, energy."""
    from core.evaluate import recurrence as experiment
    from core.evaluate.report import read_problems, write_json

    told = session(context)
    known = use_preset(told, preset)
    given = list(read_problems(problems, limit))
    need_some(given, problems, "problems")
    say = speaker()
    with state_folder(state) as folder:
        settings = told.settings()
        model = load_model(settings, say)
        plan = make_plan(settings, attempts, max_tokens, temperature, seed, known.plan if known else None)
        found = experiment.run(model, given, plan, folder, source_digest=file_digest(problems), say=say)
    report = {"preset": preset, **found.to_json()}
    if json_out is not None:
        write_json(json_out, report)
    if figures is not None:
        experiment.write_figures(figures, found)
    told.show(report, recurrence_words(report))


@app.command()
def kinds(context: typer.Context, json_out: JsonFile = None) -> None:
    """Which cache kinds come back bit for bit, measured here on tiny models; and which are refused, with the reason."""
    from core.evaluate.cache_kinds import measure_cache_kinds, table
    from core.evaluate.report import write_json

    rows = measure_cache_kinds()
    report = {"kinds": plain(rows)}
    if json_out is not None:
        write_json(json_out, report)
    session(context).show(report, table(rows))
    if any(row.outcome == "divergent" for row in rows):
        raise typer.Exit(1)
