"""The command that measures a graft's cost beside what one would use instead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ui.terminal.common import plain, session, size, table


def bench(
    context: typer.Context,
    quick: Annotated[bool, typer.Option("--quick", help="fewer lengths and tokens; under 5 minutes")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="also write the report to this file")] = None,
) -> None:
    """Restore, first token, decode loop and best-of-8 against what one would use instead, in one run."""
    from core.evaluate.bench import bench as run
    from core.model import load

    here = session(context)
    report = run(load(here.settings()), quick=quick, say=lambda text: typer.echo(text, err=True))
    if json_file is not None:
        json_file.write_text(json.dumps(plain(report), indent=2) + "\n", encoding="utf-8")
    here.show(report, lambda: _words(report))


def _words(report: dict[str, Any]) -> str:
    rows = [
        (
            s["tokens"],
            size(s["bytes"]),
            f"{s['reprefill']:.2f} s",
            f"{s['graft_first_token'] * 1e3:.0f} ms",
            f"{s['first_token_ratio']:.0f}x",
            f"{s['restore'] * 1e3:.1f} ms",
            f"{s['restore_ratio']:.2f}x",
        )
        for s in report["sizes"]
    ]
    heads = ("tokens", "artifact", "re-prefill", "graft, first token", "sooner", "restore", "of read + copy")
    best = f"{report['best_of_8_tokens_per_second']:.1f} tokens/s, {report['best_of_8_ratio']:.1f}x of eight runs"
    return "\n".join(
        [
            table(rows, heads),
            f"decode {report['decode_tokens_per_second']:.1f} tokens/s, {report['decode_ratio']:.2f}x of generate",
            f"best of 8: {best}",
        ]
    )
