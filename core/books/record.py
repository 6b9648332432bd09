"""A book's rows as they are read: in order, a page in memory at a time, and the digest over them. Knows no model."""

from __future__ import annotations

from collections.abc import Iterator

from library.digest import digest_bytes, digest_json
from library.store import Library
from library.tables import Book, Segment

_PAGE = 16  # segment rows (with their text) in memory at a time


def rows(library: Library, book_id: str) -> Iterator[Segment]:
    """A book's segments in order, a page in memory at a time."""
    offset = 0
    while page := library.segments(book_id, limit=_PAGE, offset=offset):
        yield from page
        offset += len(page)


def book_digest(library: Library, book: Book) -> str:
    """Commits to the model and, in order, to every segment's place, text and artifact."""
    entries = [
        [row.ordinal, row.file, row.file_digest, row.start, row.end, row.tokens, text_key(row.text), row.artifact]
        for row in rows(library, book.id)
    ]
    return str(digest_json({"identity": book.identity, "segments": entries}))


def text_key(text: str) -> str:
    """What a segment is recognised by: its text, to the byte."""
    return str(digest_bytes(text.encode()))
