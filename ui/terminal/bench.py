"""The command that measures a graft's cost beside what one would use instead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ui.terminal.common import plain, session, size, table


def bench(
    context: typer.Context,
    quick: Annotated[bool, typer.Option("--quick", help="fewer lengths, tokens and records; under 5 minutes")] = False,
    records: Annotated[
        int | None, typer.Option("--records", min=1, help="rows of the largest library (1,000,000; quick: 50,000)")
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="also write the report to this file")] = None,
    figures: Annotated[
        Path | None, typer.Option("--figures", help="write Plotly figures (HTML) to this folder")
    ] = None,
) -> None:
    """Restore, first token, decode loop, best-of-8 and library size against what one would use instead, in one run."""
    from core.evaluate.bench import bench as run
    from core.evaluate.bench import write_figures
    from core.model import load
    from core.sources import gguf_file

    here = session(context)
    settings = here.settings()
    model = load(settings)
    # transformers' generate is measured on transformers' own arithmetic
    theirs = load(settings.model_copy(update={"packed": False})) if model.environment.fields["packed"] else model
    report = run(
        model,
        theirs,
        quick=quick,
        records=records,
        gguf=gguf_file(settings.model),
        say=lambda text: typer.echo(text, err=True),
    )
    if json_file is not None:
        json_file.write_text(json.dumps(plain(report), indent=2) + "\n", encoding="utf-8")
    if figures is not None:
        write_figures(figures, report)
    here.show(report, lambda: _words(report))


def _words(report: dict[str, Any]) -> str:
    rows = [
        (
            s["tokens"],
            size(s["bytes"]),
            f"{s['solve']:.1f} s",
            f"{s['reprefill']:.2f} s",
            f"{s['graft_first_token'] * 1e3:.0f} ms",
            f"{s['first_token_ratio']:.0f}x",
            f"{s['restore'] * 1e3:.1f} ms",
            f"{s['restore_ratio']:.2f}x",
            f"{s['torch_save'] * 1e3:.0f} ms",
            f"{s['unverified_load'] * 1e3:.0f} ms",
        )
        for s in report["sizes"]
    ]
    heads = (
        *("tokens", "artifact", "solve", "re-prefill", "graft, first token", "sooner", "restore", "of read + copy"),
        *("torch.save", "unverified load"),
    )
    libraries = [
        (
            f"{s['records']:,}",
            f"{s['lookup_p95_ms']:.2f} ms",
            f"{s['candidates_p95_ms']:.1f} ms",
            f"{s['page_ms']:.1f} ms",
            f"{s['open_seconds']:.2f} s",
            f"{s['memory_mb']:.0f} MB",
        )
        for s in report["library"]
    ]
    slots = [
        (
            s["tokens"],
            size(s["bytes"]),
            f"{s['prefill']:.2f} s",
            f"{s['save'] * 1e3:.0f} ms",
            f"{s['restore'] * 1e3:.0f} ms",
            f"{s['first_token'] * 1e3:.0f} ms",
        )
        for s in report["llama_cpp_slots"]
    ]
    best = f"{report['best_of_8_tokens_per_second']:.1f} tokens/s, {report['best_of_8_ratio']:.1f}x of eight runs"
    lines = [
        table(rows, heads),
        f"decode {report['decode_tokens_per_second']:.1f} tokens/s, {report['decode_ratio']:.2f}x of generate "
        f"({report['generate_tokens_per_second']:.1f} tokens/s)",
        f"best of 8: {best}",
        table(libraries, ("records", "lookup p95", "candidates p95", "page", "first answer", "memory")),
        f"llama.cpp: {report['llama_cpp']}",
    ]
    if slots:
        lines.append(table(slots, ("tokens", "slot file", "prefill", "save", "restore", "first token")))
    return "\n".join(lines)
