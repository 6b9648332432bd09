"""What the experiments' commands share: model, plan and preset from the options, where progress lies, words."""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ui.terminal.common import Session

if TYPE_CHECKING:
    from core.evaluate.recurrence import Preset
    from core.gate import Policy
    from core.model import FrozenModel
    from core.settings import Settings
    from core.solve import Plan

ATTEMPTS = 8
_PARTS = ("greedy", "solve", "replay")


def read_policy(name: str) -> Policy:
    """Raises `UsageError` for an unknown name."""
    from core.gate import Policy
    from library.errors import UsageError

    try:
        return Policy(name)
    except ValueError as error:
        raise UsageError(f"unknown policy {name!r}: one of {', '.join(Policy)}") from error


def use_preset(told: Session, name: str | None) -> Preset | None:
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


def make_plan(
    settings: Settings,
    attempts: int | None,
    max_tokens: int | None,
    temperature: float | None,
    seed: int,
    preset: Plan | None = None,
) -> Plan:
    """The options over the preset, or over the settings with 8 attempts; never greedy, or attempts would be one."""
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


def load_model(settings: Settings, say: Callable[[str], None]) -> FrozenModel:
    """The model that the settings name."""
    from core.model import load

    return load(settings, say=say)


def about_run(model: FrozenModel, plan: Plan) -> dict[str, Any]:
    """What a report says about the model, the machine and the plan."""
    import os
    from dataclasses import asdict

    from core.evaluate.once import RULE

    machine = {"cores": os.cpu_count(), **model.environment.fields, "dtype": str(model.dtype).removeprefix("torch.")}
    return {"model": model.name, "machine": machine, "plan": asdict(plan), "approved_by": RULE}


def file_digest(path: Path) -> str:
    """Names the data of a run, so that its progress is not continued with other data."""
    from library.digest import digest_bytes

    return str(digest_bytes(path.read_bytes()))


def one_of(pairs: Path | None, problems: Path | None) -> Path:
    """The one file that was given. Raises `UsageError` for none or two."""
    from library.errors import UsageError

    if pairs is not None and problems is None:
        return pairs
    if problems is not None and pairs is None:
        return problems
    raise UsageError("give either --pairs or --problems")


def need_some(found: list[Any], path: Path, what: str) -> None:
    """Raises `NotFound` where a file has nothing to run on."""
    from library.errors import NotFound

    if not found:
        raise NotFound(f"{path} has no {what}")


@contextlib.contextmanager
def state_folder(state: Path | None) -> Iterator[Path]:
    """Where progress and the experiment's library lie; without --state a folder that is gone afterwards."""
    if state is not None:
        yield state
        return
    with tempfile.TemporaryDirectory(prefix="scion-experiment-") as name:
        yield Path(name)


def speaker() -> Callable[[str], None]:
    """Progress lines on stderr, each with the seconds since the start."""
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - started:7.1f} s] {text}", file=sys.stderr, flush=True)

    return say


def recurrence_words(report: dict[str, Any]) -> str:
    """The recurrence report as a table."""
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


def _ratio(value: float | None) -> str:
    return "none" if value is None else f"{value:.1f}"
