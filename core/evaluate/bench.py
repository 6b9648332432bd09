"""What a graft costs beside what one would use instead, all in one run on the user's machine.

Every figure is a ratio of times measured side by side, with the times beside it. Nothing here is asserted in a test.
"""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from core.energy import source
from core.evaluate import llama_slots
from core.evaluate.bench_states import Sized, measure_size, natural_ids, solve_seconds, timed
from core.evaluate.report import write_lines
from core.evaluate.scale import Scale, grow_and_measure
from core.model import FrozenModel
from core.profiles import cue_ids
from core.solve import Plan, solve
from library.store import Library

QUICK_SIZES = (256, 1024, 2048)
FULL_SIZES = (256, 512, 1024, 2048, 4096, 8064)
QUICK_RECORDS, FULL_RECORDS = 50_000, 1_000_000
Say = Callable[[str], None]


def bench(
    model: FrozenModel,
    plain: FrozenModel,
    *,
    quick: bool = False,
    records: int | None = None,
    gguf: Path | None = None,
    say: Say = lambda text: None,
) -> dict[str, Any]:
    """All measurements on one model; JSON without further meaning than its names.

    `plain`: the same model as transformers runs it, for `generate`. `records`: the largest library; None: 50,000 if
    quick, else a million. `gguf`: the model's file for llama.cpp, where that is installed.
    """
    sizes = [n for n in (QUICK_SIZES if quick else FULL_SIZES) if n + 128 <= model.window]
    with (
        tempfile.TemporaryDirectory(prefix="scion-bench-") as folder,
        Library.open(Path(folder) / "library") as library,
    ):
        by_size = []
        for tokens in sizes:
            say(f"graft against re-prefill at {tokens} tokens")
            by_size.append(measure_size(model, library, tokens))
        say("decode loop against generate")
        decoding = measure_decode(model, plain, tokens=48 if quick else 128)
        say("best of 8 against eight runs")
        best = measure_best_of(model, tokens=24 if quick else 64)
        cue = cue_ids(model.tokenizer, model.profile.cues[0])
        say("llama.cpp's slots")
        slots, about = llama_slots.measure(
            gguf, sizes, lambda tokens: natural_ids(model, tokens), cue, torch.get_num_threads()
        )
        scales = grow_and_measure(Path(folder) / "many", steps(records or _records(quick)), say)
    return report(model, quick, by_size, {**decoding, **best}, scales) | {
        "llama_cpp": about,
        "llama_cpp_slots": [asdict(slot) for slot in slots],
    }


def report(
    model: FrozenModel, quick: bool, by_size: Sequence[Sized], ratios: dict[str, Any], scales: Sequence[Scale]
) -> dict[str, Any]:
    """The JSON report, its headline figures first."""
    solved = solve_seconds(by_size)
    return {
        "machine": machine(model),
        "quick": quick,
        "restore_ratio": by_size[-1].restore_ratio,
        "first_token_ratio": {str(s.tokens): s.first_token_ratio for s in by_size},
        **ratios,
        "lookup_p95_ms": {str(s.records): s.lookup_p95_ms for s in scales},
        "candidates_p95_ms": {str(s.records): s.candidates_p95_ms for s in scales},
        "sizes": [
            {
                **asdict(s),
                "first_token_ratio": s.first_token_ratio,
                "restore_ratio": s.restore_ratio,
                "solve": solved[s.tokens],
            }
            for s in by_size
        ],
        "library": [asdict(s) for s in scales],
    }


def steps(records: int) -> list[int]:
    """Library sizes up to `records`, by tens: 1,000 and so on."""
    return sorted({*(10**power for power in range(3, 10) if 10**power < records), records})


def _records(quick: bool) -> int:
    return QUICK_RECORDS if quick else FULL_RECORDS


def machine(model: FrozenModel) -> dict[str, Any]:
    """What the figures were measured on."""
    return {
        **model.environment.fields,
        "model": model.name,
        "dtype": str(model.dtype),
        "system": platform.platform(),
        "energy": source(model.device.type),
    }


def measure_decode(model: FrozenModel, plain: FrozenModel, tokens: int) -> dict[str, Any]:
    """Our decode loop and transformers' `generate`, greedy, same prompt, same number of tokens; alternating."""
    prompt = model.prompt_ids("Ana has 9 stamps and finds 14 more. Tell a long story about her.")
    ids = torch.tensor([prompt], device=model.device)
    ours, theirs = [], []
    silent = _without_stops(model)
    for _ in range(3):
        ours.append(timed(lambda: solve(silent, prompt, Plan(max_tokens=tokens))))
        with torch.inference_mode():
            theirs.append(
                timed(
                    lambda: plain.network.generate(
                        ids,
                        attention_mask=torch.ones_like(ids),
                        max_new_tokens=tokens,
                        min_new_tokens=tokens,
                        do_sample=False,
                        pad_token_id=0,
                    )
                )
            )
    return {
        "decode_ratio": min(theirs) / min(ours),
        "decode_tokens_per_second": tokens / min(ours),
        "generate_tokens_per_second": tokens / min(theirs),
    }


def measure_best_of(model: FrozenModel, tokens: int, attempts: int = 8) -> dict[str, Any]:
    """Eight attempts as one batch against eight runs of one attempt."""
    prompt = model.prompt_ids("Ana has 9 stamps and finds 14 more. How many does she have?")
    silent = _without_stops(model)
    plan = Plan(tokens, temperature=0.8, attempts=attempts, batch=attempts, top_p=0.95)
    batch = min(timed(lambda: solve(silent, prompt, plan)) for _ in range(2))
    single = min(timed(lambda: solve(silent, prompt, replace(plan, attempts=1))) for _ in range(2))
    return {
        "best_of_8_ratio": single * attempts / batch,
        "best_of_8_tokens_per_second": attempts * tokens / batch,
    }


def write_figures(folder: Path, found: dict[str, Any]) -> list[Path]:
    """Cost against tokens, and cost against library size, as standalone HTML. Raises `NotWritable`."""
    sizes, scales = found["sizes"], found["library"]
    cached = scales[-1]["lookup_p95_ms"] / 1e3
    lines: dict[str, dict[float, float]] = {
        "solve, token by token": {s["tokens"]: s["solve"] for s in sizes},
        "re-prefill": {s["tokens"]: s["reprefill"] for s in sizes},
        "text prefix and cue": {s["tokens"]: s["text_prefix"] for s in sizes},
        "graft, first token": {s["tokens"]: s["graft_first_token"] for s in sizes},
        "graft, restore only": {s["tokens"]: s["restore"] for s in sizes},
        "answer cache (exact lookup)": {s["tokens"]: cached for s in sizes},
    }
    if found["llama_cpp_slots"]:
        lines["llama.cpp slot, first token"] = {s["tokens"]: s["first_token"] for s in found["llama_cpp_slots"]}
    by_records: dict[str, dict[float, float]] = {
        "exact lookup, p95": {s["records"]: s["lookup_p95_ms"] for s in scales},
        "candidates, p95": {s["records"]: s["candidates_p95_ms"] for s in scales},
        "a page of the table": {s["records"]: s["page_ms"] for s in scales},
    }
    title = f"Cost of a state, {found['machine']['model']}"
    axes = ("records", "milliseconds")
    return [
        write_lines(folder, "bench-tokens", title, ("tokens", "seconds"), lines, logarithmic=True),
        write_lines(folder, "bench-library", "Cost of a library", axes, by_records, logarithmic=True),
    ]


def _without_stops(model: FrozenModel) -> FrozenModel:
    return replace(model, stop_ids=frozenset(), profile=replace(model.profile, stops=()))
