"""Commands of books, texts beyond the window: ingest, list, show, accept, revoke, ask, pack, drop."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ui.terminal.common import actor, finish, plain, session, short, size, table

app = typer.Typer(no_args_is_help=True, help="Books: texts longer than the window, kept as states of their segments.")


@app.command()
def ingest(
    context: typer.Context,
    source: Annotated[Path, typer.Argument(help="a text, Markdown or PDF file, or a folder of such")],
    book: Annotated[str, typer.Option(help="the book's name")],
    segment_tokens: Annotated[
        int | None, typer.Option(min=16, help="most tokens of text a segment (2048, or what the window allows)")
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="the book may be of another source so far")] = False,
) -> None:
    """Make a book, or bring it up to date: what is there is kept. Goes on where it was stopped."""
    from library.errors import NotFound

    here = session(context)
    if not source.exists():
        raise NotFound(f"there is no file or folder {source}")
    with here.engine(create=True) as engine:
        job = engine.books.build(str(source), book, by=actor(), segment_tokens=segment_tokens, replace=replace)
        view = here.follow(engine, job)
    result = {**view.result, "status": view.state}
    here.show(result, lambda: _ingested(book, result))
    finish(0 if view.state == "done" else 1)


def _ingested(book: str, result: dict[str, Any]) -> str:
    if result["status"] != "done":
        return f"{result['status']}; the same command goes on from here"
    words = f"{result['segments']} segments ({result['built']} built now) of {result['addressable_tokens']} tokens"
    words += f" in {result['seconds']:.0f} s\nbook digest {result['digest']}\n{book!r} is {result['state']}"
    return words + ("" if result["state"] == "accepted" else f": python app.py context accept {book!r}")


@app.command("list")
def list_(context: typer.Context) -> None:
    """All books."""
    from core.books.curate import describe

    here = session(context)
    with here.library() as library:
        views = [describe(library, book.name) for book in library.books()]
    rows = [
        (v.name, v.state, v.segments, v.addressable_tokens, v.attended_tokens, size(v.stored_bytes), v.model)
        for v in views
    ]
    heads = ("book", "state", "segments", "addressable", "attended", "size", "model")
    here.show([plain(v) for v in views], table(rows, heads) if rows else "the library has no books")


@app.command()
def show(context: typer.Context, name: str) -> None:
    """One book: its figures and its segments."""
    from core.books.curate import describe
    from core.books.record import rows

    here = session(context)
    with here.library() as library:
        view = describe(library, name)
        book = library.book(name)
        listed = [
            (row.ordinal, row.file, f"{row.start} to {row.end}", row.tokens, (row.artifact or "missing")[7:19],
             short(row.text, 48))
            for row in rows(library, book.id)
        ]  # fmt: skip
    words = [
        f"{view.name}: {view.state}, made with {view.model} by {view.created_by} on {view.created[:10]}",
        f"addressable {view.addressable_tokens} tokens, attended {view.attended_tokens} at a time",
        f"{size(view.stored_bytes)} on disk, {view.bytes_per_token:.0f} bytes a token",
        f"states: {', '.join(f'{count} {state}' for state, count in view.artifacts)}",
        f"digest {view.digest or 'none yet'}",
        "",
        table(listed, ("segment", "file", "characters", "tokens", "artifact", "text")),
    ]
    keys = ("ordinal", "file", "characters", "tokens", "artifact", "text")
    here.show({**plain(view), "items": [dict(zip(keys, row, strict=True)) for row in listed]}, "\n".join(words))


@app.command()
def accept(context: typer.Context, name: str) -> None:
    """Let a finished book answer."""
    from core.books.curate import accept as accept_book

    here = session(context)
    with here.library() as library:
        book = accept_book(library, name, actor())
    here.show(book, f"{book.name} is {book.state}")


@app.command()
def revoke(context: typer.Context, name: str, reason: Annotated[str, typer.Option(help="why; required")]) -> None:
    """Take a book and its segments' states out of use for good."""
    from core.books.curate import revoke as revoke_book

    here = session(context)
    with here.library() as library:
        gone = revoke_book(library, name, reason, actor())
    here.show({"book": name, "revoked": gone}, f"{name} is revoked, with the states of {len(gone)} segments")


@app.command()
def ask(
    context: typer.Context,
    name: str,
    question: str,
    segments: Annotated[int | None, typer.Option(min=1, max=64, help="segments that are asked (3)")] = None,
) -> None:
    """Ask an accepted book. Exit code 1 if none of the segments that were asked knows."""
    here = session(context)
    with here.engine() as engine:
        result = dict(here.follow(engine, engine.books.ask(name, question, by=actor(), segments=segments)).result)
    here.show(result, lambda: _answered(result))
    finish(0 if result.get("answer") else 1)


def _answered(result: dict[str, Any]) -> str:
    source = result.get("source")
    lines = [str(result.get("answer") or "no answer")]
    if source:
        place = f"{source['file']}, characters {source['quote_start']} to {source['quote_end']}"
        lines.append(f"  segment {source['ordinal']}: {place}: {short(source['quote'], 160)}")
        lines.append("  unverified: no person has checked this answer")
    lines += [f"  {reason}" for reason in result.get("reasons", ())]
    lines.append(
        f"{result['addressable_tokens']} tokens addressable, {result['attended_tokens']} attended; "
        f"first token after {result['first_token_seconds']:.2f} s, {result['seconds']:.2f} s in all"
    )
    return "\n".join(lines)


@app.command()
def pack(context: typer.Context, name: str) -> None:
    """Compress a cold book's states; nothing is lost."""
    from core.books.curate import pack as pack_book

    here = session(context)
    with here.library() as library:
        saved = pack_book(library, name, actor())
    here.show({"book": name, "saved_bytes": saved}, f"{size(saved)} saved")


@app.command()
def drop(context: typer.Context, name: str) -> None:
    """Delete the bytes of a cold book's states; each is rebuilt when a question needs it."""
    from core.books.curate import drop as drop_book

    here = session(context)
    with here.library() as library:
        count = drop_book(library, name, actor())
    here.show({"book": name, "dropped": count}, f"{count} states dropped")


def context_command(
    context: typer.Context,
    tokens: Annotated[int, typer.Option(min=256, help="tokens of text to address")] = 32_768,
    model: Annotated[str | None, typer.Option(help="as the option before the command")] = None,
    segment_tokens: Annotated[int | None, typer.Option(min=16, help="most tokens of text a segment")] = None,
    needles: Annotated[int, typer.Option(min=1, max=512, help="facts that are hidden and asked for")] = 12,
    segments: Annotated[int, typer.Option(min=1, max=64, help="segments that a question is put to")] = 3,
    seed: Annotated[int, typer.Option(help="of the text and its facts")] = 0,
    synthetic: Annotated[bool, typer.Option("--synthetic", help="a tiny random model: no recall")] = False,
    baseline: Annotated[bool, typer.Option(help="also ask a model that sees only the end of the text")] = True,
    state: Annotated[
        Path | None, typer.Option("--state", help="keep book and progress here: the same command goes on from there")
    ] = None,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report to this file")] = None,
    figures: Annotated[Path | None, typer.Option("--figures", help="write Plotly figures (HTML) here")] = None,
) -> None:
    """Facts hidden in a text of many windows: recall, memory, time and exactness. Exit code 3 on a mismatch."""
    import sys
    import tempfile
    import time

    from core.books.deposit import ANSWER_ROOM, QUESTION_ROOM, largest_segment
    from core.books.ingest import DEFAULT_TOKENS
    from core.evaluate.context import Setup, run
    from core.evaluate.context_report import write_figures
    from core.evaluate.report import write_json
    from core.evaluate.tiny_reader import write_tiny_reader
    from core.model import load

    here = session(context)
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - started:7.1f} s] {text}", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory(prefix="scion-experiment-") as temporary:
        folder = state or Path(temporary)
        if model is not None:
            here.overrides["model"] = model
        if synthetic:
            wanted = segment_tokens or 8192
            window = wanted + QUESTION_ROOM + ANSWER_ROOM + 64
            here.overrides["model"] = str(write_tiny_reader(folder / f"reader-{window}", window=window))
        loaded = load(here.settings(), say=say)
        setup = Setup(
            tokens=tokens,
            segment_tokens=segment_tokens or (8192 if synthetic else min(DEFAULT_TOKENS, largest_segment(loaded))),
            needles=needles,
            segments=segments,
            seed=seed,
            synthetic=synthetic,
            baseline=baseline,
        )
        report = run(loaded, setup, folder, say=say)
    if json_out is not None:
        write_json(json_out, report)
    if figures is not None:
        write_figures(figures, report)
    here.show(report, lambda: _measured(report))
    finish(3 if report["digest_mismatches"] else 0)


def _measured(report: dict[str, Any]) -> str:
    from core.evaluate.report import markdown

    keys = ("addressable_tokens", "attended_tokens", "segments", "segments_checked", "digest_mismatches",
            "peak_memory_ratio", "peak_memory_ratio_net", "recall", "recall_when_routed", "routing_recall",
            "baseline_recall", "first_token_seconds", "routing_seconds", "answer_seconds", "ingest_seconds",
            "ingest_tokens_per_second", "bytes_per_token")  # fmt: skip
    return f"{report['model']}\n\n" + markdown(("what", "measured"), [(key, report.get(key)) for key in keys])
