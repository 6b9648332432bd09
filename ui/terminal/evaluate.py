"""Commands of the experiments. `gate` needs no model and imports no torch; the others use libraries of their own."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ui.terminal.common import Session, session

if TYPE_CHECKING:
    from core.evaluate.recurrence import Preset
    from core.gate import Policy
    from core.model import FrozenModel
    from core.settings import Settings
    from core.solve import Plan

app = typer.Typer(no_args_is_help=True, help="Experiments, with a JSON report; they never touch your library.")

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

ATTEMPTS = 8


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
    chosen = _policy(policy)
    calibration = None
    if chosen is Policy.CALIBRATED:
        from core.calibrations import read_calibration

        calibration = read_calibration(state.settings())
    say = _speaker()
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
    _print(state, report, "\n".join(words))


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
    from core.evaluate.made import pairs_of
    from core.evaluate.near_miss_report import report, tables, write_figures
    from core.evaluate.pairs import read_pairs
    from core.evaluate.report import read_problems, write_json

    told = session(context)
    chosen = _policy(policy)
    file = _one_of(pairs, problems)
    rows = read_pairs(file) if pairs is not None else pairs_of(read_problems(file), seed)
    selected = experiment.select(rows, limit=limit, datasets=dataset or ())
    _some(selected, file, "pairs with role positive or negative and a base answer")
    say = _speaker()
    with _folder(state) as folder:
        settings = told.settings()
        model = _model(settings, say)
        plan = _plan(settings, attempts, max_tokens, temperature, seed)
        before = str(model.weights_digest())
        set_up = experiment.Experiment(plan, chosen)
        bases, variants = experiment.run(model, selected, set_up, folder, source_digest=_digest(file), say=say)
        about = {
            **_about(model, plan),
            "policy": str(chosen),
            "weights_digest_before": before,
            "weights_digest_after": str(model.weights_digest()),
        }
    found = report(bases, variants, about)
    if json_out is not None:
        write_json(json_out, found)
    if figures is not None:
        write_figures(figures, variants, model.name)
    head = f"{model.name}, policy {chosen}: {found['bases_solved']} of {found['bases']} bases solved\n\n"
    _print(told, found, head + tables(variants))


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
    known = _preset(told, preset)
    given = list(read_problems(problems, limit))
    _some(given, problems, "problems")
    say = _speaker()
    with _folder(state) as folder:
        settings = told.settings()
        model = _model(settings, say)
        plan = _plan(settings, attempts, max_tokens, temperature, seed, known.plan if known else None)
        found = experiment.run(model, given, plan, folder, source_digest=_digest(problems), say=say)
    report = {"preset": preset, **found.to_json()}
    if json_out is not None:
        write_json(json_out, report)
    if figures is not None:
        experiment.write_figures(figures, found)
    _print(told, report, _recurrence_words(report))


@app.command()
def kinds(context: typer.Context, json_out: JsonFile = None) -> None:
    """Which cache kinds come back bit for bit, measured here on tiny models; and which are refused, with the reason."""
    from core.evaluate.cache_kinds import measure_cache_kinds, table
    from core.evaluate.report import write_json
    from ui.terminal.common import plain

    rows = measure_cache_kinds()
    report = {"kinds": plain(rows)}
    if json_out is not None:
        write_json(json_out, report)
    _print(session(context), report, table(rows))
    if any(row.outcome == "divergent" for row in rows):
        raise typer.Exit(1)


def _policy(name: str) -> Policy:
    from core.gate import Policy
    from library.errors import UsageError

    try:
        return Policy(name)
    except ValueError as error:
        raise UsageError(f"unknown policy {name!r}: one of {', '.join(Policy)}") from error


def _preset(told: Session, name: str | None) -> Preset | None:
    """The preset; its model, device and dtype where the command line gives none."""
    from core.evaluate.recurrence import PRESETS
    from library.errors import UsageError

    if name is None:
        return None
    if name not in PRESETS:
        raise UsageError(f"unknown preset {name!r}: one of {', '.join(PRESETS)}")
    preset = PRESETS[name]
    for option in ("model", "device", "dtype"):
        if told.overrides.get(option) is None:
            told.overrides[option] = getattr(preset, option)
    return preset


def _plan(
    settings: Settings,
    attempts: int | None,
    max_tokens: int | None,
    temperature: float | None,
    seed: int,
    preset: Plan | None = None,
) -> Plan:
    from core.solve import Plan

    base = preset or Plan(settings.max_tokens, settings.temperature or 0.7, settings.top_p, 0, ATTEMPTS, settings.batch)
    return Plan(
        max_tokens=max_tokens or base.max_tokens,
        temperature=temperature or base.temperature,
        top_p=base.top_p,
        seed=seed,
        attempts=attempts or base.attempts,
        batch=base.batch,
    )


def _model(settings: Settings, say: Any) -> FrozenModel:
    from core.model import load

    return load(settings, say=say)


def _about(model: FrozenModel, plan: Plan) -> dict[str, Any]:
    import os
    from dataclasses import asdict

    from core.evaluate.once import RULE

    machine = {"cores": os.cpu_count(), **model.environment.fields, "dtype": str(model.dtype).removeprefix("torch.")}
    return {"model": model.name, "machine": machine, "plan": asdict(plan), "approved_by": RULE}


def _digest(path: Path) -> str:
    from library.digest import digest_bytes

    return str(digest_bytes(path.read_bytes()))


def _one_of(pairs: Path | None, problems: Path | None) -> Path:
    from library.errors import UsageError

    if pairs is not None and problems is None:
        return pairs
    if problems is not None and pairs is None:
        return problems
    raise UsageError("give either --pairs or --problems")


def _some(found: list[Any], path: Path, what: str) -> None:
    from library.errors import NotFound

    if not found:
        raise NotFound(f"{path} has no {what}")


@contextlib.contextmanager
def _folder(state: Path | None) -> Iterator[Path]:
    """Where progress and the experiment's library lie; without --state a folder that is gone afterwards."""
    if state is not None:
        yield state
        return
    with tempfile.TemporaryDirectory(prefix="scion-experiment-") as name:
        yield Path(name)


def _speaker() -> Any:
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - started:7.1f} s] {text}", file=sys.stderr, flush=True)

    return say


def _print(state: Session, report: dict[str, Any], words: str) -> None:
    state.show(report, words)


def _recurrence_words(report: dict[str, Any]) -> str:
    from core.evaluate.report import markdown, share

    n = report["n"]
    rows = []
    for name, key in (("without the library (greedy, once)", "without"), ("with the library", "with")):
        counted = share(report["intervals"][key]["hits"], n)
        rows.append((name, counted.words()))
    energy = report["energy"]
    rows += [
        ("deposited", f"{report['deposited']} of {n}"),
        ("tokens, one greedy run of the deposited", report["greedy_tokens"]),
        ("tokens, their solve by up to k attempts", report["solve_tokens"]),
        ("tokens, their recurrence from the library", report["replay_tokens"]),
        ("ratio solve / replay", _ratio(report["ratio"])),
        ("ratio greedy / replay", _ratio(report["ratio_greedy"])),
        ("seconds, greedy / solve / replay", " / ".join(f"{report[f'seconds_{p}']:.1f}" for p in _PARTS)),
        (f"joules, greedy / solve / replay ({energy['source']})",
         " / ".join(str(energy[f"joules_{p}"]) for p in _PARTS)),
        ("FLOPs estimated, greedy / solve / replay", " / ".join(f"{energy[f'flops_{p}']:.3g}" for p in _PARTS)),
        ("replays", ", ".join(f"{name} {count}" for name, count in report["replay_exactness"].items()) or "none"),
        ("weights digest the same before and after",
         report["weights_digest_before"] == report["weights_digest_after"]),
    ]  # fmt: skip
    return f"{report['model']}, n = {n}\n\n" + markdown(("what", "measured"), rows)


_PARTS = ("greedy", "solve", "replay")


def _ratio(value: float | None) -> str:
    return "none" if value is None else f"{value:.1f}"
