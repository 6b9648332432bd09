"""Are artifacts' bytes still what their digests say, and are they in use? Reads and hashes; knows no model.

A damaged one is quarantined by the library as it is read.
"""

from __future__ import annotations

from dataclasses import dataclass

from library.artifact import decode
from library.artifacts import as_row
from library.digest import Digest
from library.errors import Conflict, CorruptError, NotFound
from library.store import Library
from library.tables import Artifact

GRAFTABLE = ("published", "held")  # held: in the lab, before a person's eyes; an ask takes published ones only


@dataclass(frozen=True)
class VerifyRow:
    """One artifact's integrity: `finding` says what is wrong."""

    digest: str
    ok: bool
    finding: str


def with_bytes(library: Library) -> list[Artifact]:
    """The artifacts whose bytes should be there."""
    records = library.index.artifacts(states=("published", "held", "imported"), limit=1_000_000)
    return [as_row(record) for record in records]


def verify_one(library: Library, row: Artifact) -> VerifyRow:
    """Read one artifact and check it whole."""
    if row.state in ("evicted", "quarantined", "revoked"):
        return VerifyRow(row.digest, row.state == "evicted", f"{row.state}: {row.state_reason}")
    try:
        decode(library.read_blob(row.digest), Digest.parse(row.digest))
    except (CorruptError, NotFound) as fault:
        return VerifyRow(row.digest, False, f"{type(fault).__name__}: {fault}")
    return VerifyRow(row.digest, True, "")


def check_usable(library: Library, digest: str, states: tuple[str, ...] = GRAFTABLE) -> Artifact:
    """Its record. Raises `Conflict` unless it is in one of `states` now: it may be revoked since it was found."""
    row = library.artifact(digest)
    if row.state not in states:
        raise Conflict(f"artifact {row.digest[:19]}… is {row.state}: its state cannot be grafted")
    return row
