"""Commands of room on disk: pack, unpack, evict, rebuild."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from ui.terminal.common import actor, finish, session, size

Digests = Annotated[list[str] | None, typer.Argument(help="artifacts")]
GIB = 1 << 30


def pack(
    context: typer.Context,
    digest: Digests = None,
    unused_for: Annotated[float | None, typer.Option(min=0, help="all not used for so many days")] = None,
    quota: Annotated[float | None, typer.Option(min=0, help="the coldest, until all states fit so many GiB")] = None,
    limit: Annotated[int, typer.Option(min=1, help="with --unused-for: at most so many")] = 100_000,
) -> None:
    """Compress the states of artifacts, losslessly. Exit code 1 if --quota is not reached."""
    from library.errors import UsageError

    if sum((bool(digest), unused_for is not None, quota is not None)) != 1:
        raise UsageError("name artifacts, or give one of --unused-for and --quota")
    here = session(context)
    with here.library() as library:
        before = library.used_bytes()
        if unused_for is not None:
            edge = datetime.now(UTC) - timedelta(days=unused_for)
            packed = library.pack_cold(edge.strftime("%Y-%m-%dT%H:%M:%S.%fZ"), limit, actor=actor())
        elif quota is not None:
            packed = library.pack_to(round(quota * GIB), actor=actor())
        else:
            rows = [library.pack(library.artifact(name).digest, actor=actor()) for name in digest or ()]
            packed = [row.digest for row in rows if row.compression != "none"]
        used = library.used_bytes()
    words = [f"{name} packed" for name in packed] + [f"{size(before - used)} saved, {size(used)} used"]
    here.show({"packed": packed, "saved_bytes": before - used, "used_bytes": used}, "\n".join(words))
    finish(1 if quota is not None and used > quota * GIB else 0)


def unpack(context: typer.Context, digest: Annotated[list[str], typer.Argument(help="artifacts")]) -> None:
    """Keep artifacts' states as raw bytes again: grafts start faster."""
    here = session(context)
    with here.library() as library:
        rows = [library.unpack(library.artifact(name).digest, actor=actor()) for name in digest]
        used = library.used_bytes()
    words = [f"{row.digest} is raw" for row in rows] + [f"{size(used)} used"]
    here.show({"unpacked": [row.digest for row in rows], "used_bytes": used}, "\n".join(words))


def evict(
    context: typer.Context,
    digest: Digests = None,
    quota: Annotated[float | None, typer.Option(min=0, help="GiB that must suffice (SCION_QUOTA_GIB)")] = None,
) -> None:
    """Drop states' bytes: of these artifacts, or of the least recently used until the quota holds. Records stay."""
    from library.errors import UsageError

    here = session(context)
    wanted = quota or here.settings().quota_gib
    if not digest and not wanted:
        raise UsageError("name artifacts, or give --quota (or set SCION_QUOTA_GIB)")
    with here.library() as library:
        if digest:
            gone = library.drop([library.artifact(name).digest for name in digest], actor=actor())
        else:
            gone = library.evict(quota_bytes=round(wanted * GIB), actor=actor())
        used = library.used_bytes()
    words = [f"{name} evicted; `library rebuild` brings it back" for name in gone] + [f"{size(used)} used"]
    here.show({"evicted": gone, "used_bytes": used}, "\n".join(words))


def rebuild(context: typer.Context, digest: Annotated[list[str], typer.Argument(help="evicted artifacts")]) -> None:
    """Bring evicted states back by replay, if their very bytes come out. Goes on where it was stopped."""
    here = session(context)
    done = []
    with here.engine() as engine:
        for name in digest:
            result = dict(here.follow(engine, engine.submit_rebuild(name, by=actor())).result)
            if not result:
                break
            done.append(result)
    words = [f"{r['artifact']} is {r['state']}, {size(r['bytes'])}" for r in done]
    words += ["stopped; the same command goes on from the last checkpoint"] if len(done) < len(digest) else []
    here.show({"rebuilt": done}, "\n".join(words))
    finish(0 if len(done) == len(digest) else 1)
