"""Removes files that nothing refers to. The only place, besides eviction, that deletes blobs.

Knows rows and files. Runs alone, under the maintenance lock, and leaves young files: another process may have
staged a state whose attempt it has yet to record.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlmodel import select

from library.blobs import PACKED, STAGING, TEMPORARY, Stray
from library.store import Library
from library.tables import Artifact, Attempt

GRACE_SECONDS = 3600.0
CHECKPOINT_SECONDS = 7 * 86400.0  # how long a replay that was interrupted can go on where it was
REVOKED_SECONDS = 30 * 86400.0  # the bytes of a revoked artifact, kept for whoever looks into the case


@dataclass(frozen=True)
class Collected:
    """What was removed (or would be): paths below the library, and their bytes.

    `set_aside` are files of quarantined records that were still in their old place.
    """

    removed: tuple[str, ...]
    bytes_freed: int
    set_aside: tuple[str, ...] = ()


def collect(
    library: Library,
    *,
    grace: float = GRACE_SECONDS,
    revoked_grace: float = REVOKED_SECONDS,
    dry_run: bool = False,
    actor: str | None = None,
    timeout: float | None = None,
) -> Collected:
    """Deletes unreferenced blobs, staged states of no attempt and interrupted writes older than `grace` seconds.

    A revoked artifact's blob goes `revoked_grace` seconds after its revocation. Nothing in quarantine is touched, nor
    are files whose names are no digests. `LibraryBusy` if another process works on the library until `timeout`.
    """
    with library._locked(exclusive=True, timeout=timeout):
        if not dry_run:
            library._forget_checkpoints(_ago(CHECKPOINT_SECONDS))
        kept = library.checkpointed()
        doomed: list[Stray] = []
        suspect: list[Stray] = []
        for stray in library.blobs.walk():
            if stray.kind != "file":
                continue
            if str(stray.digest) in kept and stray.path.startswith(f"{STAGING}/"):
                continue
            if _useless(library, stray, grace, revoked_grace):
                doomed.append(stray)
            elif _quarantined(library, stray):  # whoever quarantined the record stopped before moving the file
                suspect.append(stray)
        paths, aside = tuple(stray.path for stray in doomed), tuple(stray.path for stray in suspect)
        if dry_run or not (doomed or suspect):
            return Collected(paths, sum(stray.size for stray in doomed), aside)
        with library._write(actor) as change:
            size = sum(stray.size for stray in doomed)
            change.log("gc.collect", f"{len(doomed)} files", paths=list(paths), bytes=size, set_aside=list(aside))
        for path in aside:
            library.blobs.set_aside(path)
        return Collected(paths, sum(library.blobs.remove_path(path) for path in paths), aside)


def _quarantined(library: Library, stray: Stray) -> bool:
    if stray.digest is None or stray.path.startswith(f"{STAGING}/"):
        return False
    with library._read() as session:
        row = session.get(Artifact, str(stray.digest))
    return row is not None and row.state == "quarantined"


def _useless(library: Library, stray: Stray, grace: float, revoked_grace: float) -> bool:
    if stray.path.rpartition("/")[2].startswith(TEMPORARY):
        return stray.age >= grace
    if stray.digest is None:
        return False
    with library._read() as session:
        if stray.path.startswith(f"{STAGING}/"):
            used = session.exec(select(Attempt.id).where(Attempt.staged == str(stray.digest))).first()
            return used is None and stray.age >= grace
        row = session.get(Artifact, str(stray.digest))
    if row is None:
        return stray.age >= grace
    if row.state in ("published", "held", "imported"):
        # Raw and packed side by side: packing, or its reverse, stopped before it removed the other one.
        stale = stray.packed != (row.compression != "none")
        return stale and library.fs.stat(_other(stray)) is not None
    if row.state == "revoked":
        return row.state_since <= _ago(revoked_grace)
    return row.state == "evicted"


def _other(stray: Stray) -> str:
    return stray.path.removesuffix(PACKED) if stray.packed else stray.path + PACKED


def _ago(seconds: float) -> str:
    return (datetime.now(UTC) - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
