"""A person's word on a book, and what becomes of its bytes: accept, revoke, pack, drop, describe. Runs no model."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from core.books.ingest import book_digest, rows
from library.errors import Conflict, UsageError
from library.gc import collect
from library.store import Library
from library.tables import Book

USABLE = ("published", "evicted")  # an evicted state is rebuilt when it is asked for


@dataclass(frozen=True)
class BookView:
    """A book in figures. `addressable_tokens`: of all its text; `attended_tokens`: of its largest segment's state,
    all that any one answer attends to besides the question. `stored_bytes`: on disk now."""

    name: str
    state: str
    digest: str
    model: str
    identity: str
    segment_tokens: int
    segments: int
    addressable_tokens: int
    attended_tokens: int
    stored_bytes: int
    artifacts: tuple[tuple[str, int], ...]
    files: tuple[str, ...]
    created: str
    created_by: str

    @property
    def bytes_per_token(self) -> float:
        return self.stored_bytes / max(1, self.addressable_tokens)


def describe(library: Library, name: str) -> BookView:
    """Raises `NotFound`."""
    book = library.book(name)
    states: Counter[str] = Counter()
    files: dict[str, None] = {}
    segments = tokens = attended = stored = 0
    for row in rows(library, book.id):
        segments, tokens = segments + 1, tokens + row.tokens
        files[row.file] = None
        if row.artifact is None:
            states["missing"] += 1
            continue
        record = library.artifact(row.artifact)
        states[record.state] += 1
        attended = max(attended, record.graft_point)
        stored += record.stored_bytes if record.state in ("published", "held", "imported", "revoked") else 0
    return BookView(
        name=book.name,
        state=book.state,
        digest=book.digest,
        model=book.model,
        identity=book.identity,
        segment_tokens=book.segment_tokens,
        segments=segments,
        addressable_tokens=tokens,
        attended_tokens=attended,
        stored_bytes=stored,
        artifacts=tuple(sorted(states.items())),
        files=tuple(files),
        created=book.created,
        created_by=book.created_by,
    )


def accept(library: Library, name: str, by: str) -> Book:
    """Let a finished book answer. Raises `Conflict` if it is not pending, or not what its digest says."""
    if not by.strip():
        raise UsageError("an acceptance needs its reviewer's name")
    book = library.book(name)
    if book.state == "accepted":
        return book
    if book.state != "pending":
        why = "its ingest is not finished" if book.state == "building" else "it does not come back"
        raise Conflict(f"book {name!r} is {book.state}: {why}")
    for row in rows(library, book.id):
        state = library.artifact(row.artifact).state if row.artifact else "missing"
        if state not in USABLE:
            raise Conflict(f"the state of segment {row.ordinal} is {state}: ingest the book again")
    if book_digest(library, book) != book.digest:
        raise Conflict(f"the segments of book {name!r} are not those that its digest names: ingest it again")
    return library.update_book(book.id, state="accepted", actor=by)


def revoke(library: Library, name: str, reason: str, by: str) -> list[str]:
    """Take a book and the states of all its segments out of use for good; the digests. May be repeated."""
    if not reason.strip():
        raise UsageError("a revocation needs a reason")
    book = library.book(name)
    library.update_book(book.id, state="revoked", actor=by)  # first, so that nothing answers from the rest
    gone: list[str] = []
    for row in rows(library, book.id):
        if row.artifact is not None and library.artifact(row.artifact).state != "revoked":
            gone += library.revoke(row.artifact, reason=f"book {book.name}: {reason}", actor=by)
    return gone


def pack(library: Library, name: str, by: str) -> int:
    """Compress the states of a cold book, losslessly; bytes saved."""
    saved = 0
    for row in rows(library, library.book(name).id):
        if row.artifact is not None and library.artifact(row.artifact).state == "published":
            before = library.artifact(row.artifact).stored_bytes
            saved += before - library.pack(row.artifact, actor=by).stored_bytes
    return saved


def drop(library: Library, name: str, by: str) -> int:
    """Delete the bytes of a cold book's states; how many. Each is rebuilt by replay when a question needs it.

    Pinned states stay. The records go first, then the files: a crash in between leaves files that gc removes.
    """
    dropped = 0
    for row in rows(library, library.book(name).id):
        record = library.artifact(row.artifact) if row.artifact else None
        if record is not None and record.state == "published" and not record.pinned:
            library.set_artifact_state(record.digest, "evicted", "dropped; rebuilt on demand", by)
            dropped += 1
    collect(library, actor=by)
    return dropped
