"""Commands of the library: list, show, verify, audit, certify, check, gc, revoke, pin, log."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from ui.terminal import exchange, room
from ui.terminal.common import actor, finish, plain, session, short, size, table

app = typer.Typer(no_args_is_help=True, help="Look after the deposited artifacts.")


@app.command("list")
def list_(
    context: typer.Context,
    state: Annotated[str | None, typer.Option(help="published, held, evicted, quarantined, revoked, imported")] = None,
    text: Annotated[str | None, typer.Option(help="words of the problem")] = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000)] = 50,
    offset: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """Artifacts, newest first."""
    # Plain SQL on a read-only connection: this command answers before sqlmodel would be imported.
    from library.search import list_artifacts

    here = session(context)
    states = [state] if state else None
    records = list_artifacts(here.settings().library, states=states, text=text, limit=limit, offset=offset)
    rows = [
        (
            r.digest[7:19],
            r.state,
            short(r.answer, 16),
            r.model,
            r.solve_tokens,
            size(r.size_bytes),
            r.uses,
            short(r.problem_text, 56),
        )
        for r in records
    ]
    heads = ("digest", "state", "answer", "model", "tokens", "size", "uses", "problem")
    here.show([plain(r) for r in records], table(rows, heads) if rows else "the library has no such artifacts")


@app.command()
def show(context: typer.Context, digest: str) -> None:
    """One artifact with its manifest, measurements and newest outcomes. DIGEST may be its first 6 or more digits."""
    from library.artifact import decode_header, header_size
    from library.errors import CorruptError

    here = session(context)
    with here.library() as library:
        row = library.artifact(digest)
        manifest: dict[str, Any] | None = None
        note = ""
        if row.state in ("published", "held", "imported"):
            try:
                data = library.read_blob(row.digest)
                manifest = decode_header(memoryview(data)[: header_size(data)]).model_dump(mode="json")
            except CorruptError as fault:
                note = str(fault)
        item = {
            **plain(row),
            "manifest": manifest,
            "manifest_note": note,
            "measurements": [plain(m) for m in library.measurements(row.digest, limit=20)],
            "outcomes": [plain(o) for o in library.outcomes(artifact=row.digest, limit=20)],
        }
    lines = [row.digest, f"state     {row.state} {row.state_reason}".rstrip(), f"problem   {row.problem_text}"]
    lines += [f"answer    {row.answer}", f"model     {row.model}", f"identity  {row.identity}"]
    lines += [f"environ.  {row.environment}", f"size      {size(row.size_bytes)}, {row.graft_point} positions"]
    lines += [f"solved in {row.solve_tokens} tokens; used {row.uses} times; approved by {row.reviewer}"]
    if manifest:
        certificate = manifest["certificate"]
        lines.append(f"replays   {certificate['answer']!r} in {len(certificate['answer_ids'])} tokens")
        lines.append(f"schedule  {[(r['length'], r['count'], r['batch']) for r in manifest['schedule']]}")
    lines += [f"measured  {m['created']} {m['kind']}: {m['finding']}" for m in item["measurements"]]
    here.show(item, "\n".join(lines))


@app.command()
def verify(
    context: typer.Context, digest: Annotated[str | None, typer.Argument(help="one artifact; all if left out")] = None
) -> None:
    """Read and check artifacts' bytes. Exit code 3 if one is damaged; it is quarantined."""
    here = session(context)
    with here.engine() as engine:
        rows = engine.verify(digest)
        aside = [] if digest else engine.library.index.artifacts(states=["quarantined"], limit=10_000)
    bad = [row for row in rows if not row.ok]
    known = [r.digest for r in aside if r.digest not in {row.digest for row in bad}]
    words = [f"{row.digest}  {row.finding}" for row in bad]
    words += [f"{name}  quarantined before" for name in known]
    words.append(f"{len(rows)} checked, {len(bad)} damaged, {len(known)} in quarantine from before")
    shown = {"checked": len(rows), "bad": [plain(row) for row in bad], "quarantined": known}
    here.show(shown, "\n".join(words))
    finish(3 if bad or known else 0)


@app.command()
def audit(context: typer.Context, digest: str) -> None:
    """Rebuild the state from its tokens and compare; goes on where it was stopped. Exit code 3 if it differs."""
    here = session(context)
    with here.engine() as engine:
        result = dict(here.follow(engine, engine.submit_audit(digest, by=actor())).result)
    if not result:
        here.show({"finding": "stopped"}, "stopped; the same command goes on from the last checkpoint")
        finish(1)
    resumed = f" (went on from position {result['resumed']})" if result["resumed"] else ""
    here.show(result, f"{result['artifact']}: {result['finding']} {result['words']}".rstrip() + resumed)
    finish(3 if result["finding"] == "differs" else 0)


@app.command()
def certify(context: typer.Context, digest: str) -> None:
    """Measure the certificate in this environment and record what was found."""
    here = session(context)
    with here.engine() as engine:
        result = dict(here.follow(engine, engine.submit_certify(digest, by=actor())).result)
    where = "the deposit's environment" if result["deposit_here"] else "another environment than the deposit's"
    here.show(result, f"{result['artifact']}: {result['finding']} in {where}")
    finish(1 if result["finding"] == "divergent" else 0)


@app.command()
def check(
    context: typer.Context,
    read_data: Annotated[bool, typer.Option("--read-data", help="also read and hash every byte")] = False,
    repair: Annotated[bool, typer.Option("--repair", help="move what does not fit to quarantine")] = False,
) -> None:
    """Compare rows, files and the audit log. Exit code 3 if something is damaged."""
    from library.check import check as run

    here = session(context)
    with here.library() as library:
        report = run(library, read_data=read_data, repair=repair)
    words = [f"{f.kind}: {f.subject}: {f.detail}" + (f" ({f.repaired})" if f.repaired else "") for f in report.findings]
    words.append(f"{report.records} records, {report.files} files, {size(report.bytes_read)} read")
    here.show(report, "\n".join(words))
    finish(report.exit_code)


@app.command()
def gc(context: typer.Context) -> None:
    """Remove files that nothing refers to, after their grace period."""
    from library.gc import collect

    here = session(context)
    with here.library() as library:
        collected = collect(library)
    here.show(collected, str(json.dumps(plain(collected))))


@app.command()
def revoke(
    context: typer.Context,
    digest: Annotated[str | None, typer.Argument(help="one artifact")] = None,
    reason: Annotated[str, typer.Option(help="why; required")] = "",
    verifier: Annotated[str | None, typer.Option(help="all that this verifier version stands behind")] = None,
    model: Annotated[str | None, typer.Option(help="all of this model")] = None,
    reviewer: Annotated[str | None, typer.Option(help="all that this reviewer approved")] = None,
) -> None:
    """Take artifacts out of use for good."""
    here = session(context)
    with here.library() as library:
        chosen = library.artifact(digest).digest if digest else None
        gone = library.revoke(chosen, verifier=verifier, model=model, reviewer=reviewer, reason=reason, actor=actor())
    here.show({"revoked": gone}, "\n".join(gone) + f"\n{len(gone)} revoked")


@app.command()
def pin(context: typer.Context, digest: str, off: Annotated[bool, typer.Option("--off", help="unpin")] = False) -> None:
    """Keep an artifact's bytes whatever the quota says."""
    here = session(context)
    with here.library() as library:
        row = library.pin(library.artifact(digest).digest, actor(), pinned=not off)
    here.show(row, f"{row.digest} {'pinned' if row.pinned else 'not pinned'}")


@app.command()
def release(context: typer.Context, digest: str, reason: Annotated[str, typer.Option(help="why; required")]) -> None:
    """Put a held artifact back into use."""
    here = session(context)
    with here.library() as library:
        row = library.release_hold(library.artifact(digest).digest, reason, actor())
    here.show(row, f"{row.digest} is {row.state}")


@app.command()
def rekey(context: typer.Context) -> None:
    """Bring the exact-lookup keys of records made by an older version up to date. May be stopped and run again."""
    from core.gate import CANONICAL_VERSION, canonical_key
    from library.rekeying import rekey as bring_up

    here = session(context)
    with here.library() as library:
        changed = bring_up(library, canonical_key, CANONICAL_VERSION, actor=actor())
    here.show({"rekeyed": changed, "version": CANONICAL_VERSION}, f"{changed} records have a key of today's rules now")


@app.command()
def log(
    context: typer.Context,
    verify: Annotated[bool, typer.Option("--verify", help="check the chain; exit code 3 if it is broken")] = False,
    checkpoint: Annotated[bool, typer.Option("--checkpoint", help="print a checkpoint to keep elsewhere")] = False,
    against: Annotated[str | None, typer.Option(help="a file with an earlier checkpoint")] = None,
    limit: Annotated[int, typer.Option(min=1)] = 50,
) -> None:
    """The audit log, newest first."""
    from pathlib import Path

    from library.errors import NotFound

    here = session(context)
    with here.library() as library:
        if checkpoint:
            typer.echo(library.checkpoint("scion"), nl=False)
            return
        if verify or against:
            finding = library.verify_log()
            if finding is None and against:
                try:
                    finding = library.check_against(Path(against).read_text(encoding="utf-8"))
                except OSError as error:
                    raise NotFound(f"cannot read the checkpoint {against}: {error.strerror}") from error
            shown = {"ok": finding is None, "finding": plain(finding) if finding else None}
            here.show(shown, "the log is whole" if finding is None else f"entry {finding.seq}: {finding.reason}")
            finish(0 if finding is None else 3)
            return
        entries = library.log(limit=limit)
    words = "\n".join(f"{e.seq:>6} {e.created} {e.actor:<10} {e.action:<20} {e.subject}" for e in entries)
    here.show([plain(e) for e in entries], words)


app.command()(room.pack)
app.command()(room.unpack)
app.command()(room.evict)
app.command()(room.rebuild)
app.command("export")(exchange.export)
app.command("import")(exchange.import_)
app.command("accept")(exchange.accept)
app.command("refuse")(exchange.refuse)
app.add_typer(exchange.keys, name="keys")
