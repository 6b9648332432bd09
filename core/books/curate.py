"""A person's word on a book, and what becomes of its bytes: accept, revoke, pack, drop, describe. Runs no model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from core.books.record import book_digest, rows
from library import uploads
from library.errors import Conflict, StaleVersion, UsageError
from library.gc import collect
from library.store import Library
from library.tables import Book

USABLE = ("published", "evicted")  # an evicted state is rebuilt when it is asked for
WITH_BYTES = ("published", "held", "imported", "revoked")
Report = Callable[[int, int], None]  # segments done, segments in all; may raise to stop between two of them


def _silent(_done: int, _total: int) -> None:
    return None


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
    held = library.segment_states(book.id)
    return BookView(
        name=book.name,
        state=book.state,
        digest=book.digest,
        model=book.model,
        identity=book.identity,
        segment_tokens=book.segment_tokens,
        segments=sum(part.segments for part in held),
        addressable_tokens=sum(part.tokens for part in held),
        attended_tokens=max((part.positions for part in held), default=0),
        stored_bytes=sum(part.stored_bytes for part in held if part.state in WITH_BYTES),
        artifacts=tuple((part.state, part.segments) for part in held),
        files=tuple(library.book_files(book.id)),
        created=book.created,
        created_by=book.created_by,
    )


def accept(library: Library, name: str, by: str, *, digest: str | None = None) -> Book:
    """Let a finished book answer. `digest`: of the book that the person saw; `StaleVersion` if it is another by now.

    Raises `Conflict` if it is not pending, or not what its digest says.
    """
    if not by.strip():
        raise UsageError("an acceptance needs its reviewer's name")
    book = library.book(name)
    if digest is not None and digest != book.digest:
        raise StaleVersion(f"book {book.name!r} changed since you looked: read it again, then decide")
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


def answerable(book: Book, *, also: tuple[str, ...] = ()) -> None:
    """Raises `Conflict` unless a person has accepted the book (or it is in one of the states `also`)."""
    if book.state not in ("accepted", *also):
        why = {"building": "its ingest is not finished", "revoked": "it does not come back"}
        raise Conflict(
            f"book {book.name!r} is {book.state}: {why.get(book.state, 'it answers once a person has accepted it')}"
        )


def revoke(library: Library, name: str, reason: str, by: str) -> list[str]:
    """Take a book and the states of all its segments out of use for good; the digests. May be repeated.

    The uploaded files that it was made of go too.
    """
    if not reason.strip():
        raise UsageError("a revocation needs a reason")
    book = library.book(name)
    library.update_book(book.id, state="revoked", actor=by)  # first, so that nothing answers from the rest
    gone: list[str] = []
    for row in rows(library, book.id):
        if row.artifact is not None and library.artifact(row.artifact).state != "revoked":
            gone += library.revoke(row.artifact, reason=f"book {book.name}: {reason}", actor=by)
    uploads.forget(library, book.name)
    return gone


def pack(library: Library, name: str, by: str, report: Report = _silent) -> int:
    """Compress the states of a cold book, losslessly; bytes saved."""
    book = library.book(name)
    total, saved = library.count_segments(book.id), 0
    for number, row in enumerate(rows(library, book.id)):
        report(number, total)
        if row.artifact is not None and library.artifact(row.artifact).state == "published":
            before = library.artifact(row.artifact).stored_bytes
            saved += before - library.pack(row.artifact, actor=by).stored_bytes
    return saved


def drop(library: Library, name: str, by: str, report: Report = _silent) -> int:
    """Delete the bytes of a cold book's states; how many. Each is rebuilt by replay when a question needs it.

    Pinned states stay. The records go first, then the files: a crash in between leaves files that gc removes.
    """
    book = library.book(name)
    total, dropped = library.count_segments(book.id), 0
    for number, row in enumerate(rows(library, book.id)):
        report(number, total)
        record = library.artifact(row.artifact) if row.artifact else None
        if record is not None and record.state == "published" and not record.pinned:
            library.set_artifact_state(record.digest, "evicted", "dropped; rebuilt on demand", by)
            dropped += 1
    collect(library, actor=by)
    return dropped
