"""Books and segments as rows. Knows neither how a text is split nor what a segment's state holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlmodel import col, func, or_, select

from library.audit import now
from library.database import new_id
from library.errors import Conflict
from library.people import People
from library.problems import found
from library.tables import Book, Segment


@dataclass(frozen=True)
class SegmentStates:
    """A book's segments whose artifacts are in one state (`missing`: none yet). `tokens` of text, `positions` of the
    largest state, `stored_bytes` as recorded, whether or not they are still on disk."""

    state: str
    segments: int
    tokens: int
    positions: int
    stored_bytes: int


class Books(People):
    def add_book(self, book: Book) -> str:
        """Stores a book. Fills an empty id and time. `Conflict` if the name is taken."""
        book.id = book.id or new_id("b")
        book.created = book.created or now()
        with self._write(book.created_by) as change:
            if change.session.exec(select(Book.id).where(Book.name == book.name)).first() is not None:
                raise Conflict(f"there is a book {book.name!r} already")
            change.session.add(book)
            change.log("book.add", book.id, name=book.name, state=book.state)
        return book.id

    def book(self, name: str) -> Book:
        """The book with this id or name."""
        with self._read() as session:
            query = select(Book).where(or_(col(Book.id) == name, col(Book.name) == name))
            return found(session.exec(query).first(), "book", name)

    def books(self) -> list[Book]:
        with self._read() as session:
            return list(session.exec(select(Book).order_by(col(Book.name))))

    def update_book(
        self, identifier: str, *, state: str | None = None, digest: str | None = None, actor: str | None = None
    ) -> Book:
        """Sets what is given. A revoked book stays revoked: `Conflict`."""
        with self._write(actor) as change:
            book = found(change.session.get(Book, identifier), "book", identifier)
            if book.state == "revoked" and state not in (None, "revoked"):
                raise Conflict(f"book {book.name!r} was revoked and does not come back")
            before = book.state
            book.state, book.digest = state or book.state, digest if digest is not None else book.digest
            change.session.add(book)
            change.log("book.update", identifier, before=before, state=book.state, digest=book.digest)
        return book

    def add_segments(self, book_id: str, segments: Sequence[Segment], *, actor: str | None = None) -> list[str]:
        """Adds segments to a book in one commit; fills empty ids."""
        for segment in segments:
            segment.id, segment.book_id = segment.id or new_id("s"), book_id
        with self._write(actor) as change:
            change.session.add_all(segments)
            change.log("book.segments", book_id, added=len(segments))
        return [segment.id for segment in segments]

    def segments(self, book_id: str, limit: int = -1, offset: int = 0) -> list[Segment]:
        """In order of the text."""
        with self._read() as session:
            query = select(Segment).where(Segment.book_id == book_id)
            return list(session.exec(query.order_by(col(Segment.ordinal)).limit(limit).offset(offset)))

    def count_segments(self, book_id: str) -> int:
        with self._read() as session:
            return session.exec(select(func.count()).select_from(Segment).where(Segment.book_id == book_id)).one()

    def segment_states(self, book_id: str) -> list[SegmentStates]:
        """A book in figures, by the state of its artifacts, in one query."""
        sql = """SELECT coalesce(artifact.state, 'missing') AS had, count(*), sum(segment.tokens),
            max(coalesce(artifact.graft_point, 0)), sum(coalesce(artifact.stored_bytes, 0))
            FROM segment LEFT JOIN artifact ON artifact.digest = segment.artifact WHERE book_id = ?
            GROUP BY had ORDER BY had"""
        return [SegmentStates(*row) for row in self.index.query(sql, (book_id,))]

    def book_files(self, book_id: str) -> list[str]:
        """The names of a book's files, in the order of the text."""
        sql = "SELECT file FROM segment WHERE book_id = ? GROUP BY file ORDER BY min(ordinal)"
        return [name for (name,) in self.index.query(sql, (book_id,))]

    def update_segment(
        self, identifier: str, *, artifact: str | None = None, ordinal: int | None = None, actor: str | None = None
    ) -> Segment:
        """Sets what is given: the artifact that holds its state, or its place in the book."""
        with self._write(actor) as change:
            segment = found(change.session.get(Segment, identifier), "segment", identifier)
            segment.artifact = artifact if artifact is not None else segment.artifact
            segment.ordinal = ordinal if ordinal is not None else segment.ordinal
            change.session.add(segment)
            change.log("segment.update", identifier, artifact=segment.artifact, ordinal=segment.ordinal)
        return segment

    def remove_segments(self, book_id: str, identifiers: Sequence[str], *, actor: str | None = None) -> None:
        """Takes segments out of a book whose source changed; their artifacts stay as they are."""
        with self._write(actor) as change:
            rows = select(Segment).where(Segment.book_id == book_id, col(Segment.id).in_(identifiers))
            for segment in list(change.session.exec(rows)):
                change.session.delete(segment)
            change.log("book.segments", book_id, removed=len(identifiers))
