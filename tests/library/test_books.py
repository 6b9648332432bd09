from __future__ import annotations

from pathlib import Path

import pytest

from library.errors import Conflict, NotFound
from library.store import Library
from library.tables import Book, Segment
from tests.library.stores import IDENTITY, key_of, record_of, state_of


@pytest.fixture
def library(tmp_path: Path):
    with Library.open(tmp_path / "lib", actor="ada") as opened:
        yield opened


def _book(name: str = "novel") -> Book:
    return Book(id="", name=name, model="m", identity=IDENTITY, segment_tokens=100, created="", created_by="ada")


def _segments(count: int) -> list[Segment]:
    return [
        Segment(id="", book_id="", ordinal=number, file="a.txt", file_digest="", start=number, end=number + 1,
                tokens=1, text=f"text {number}")
        for number in reversed(range(count))
    ]  # fmt: skip


def test_book_and_its_segments(library: Library) -> None:
    book = library.add_book(_book())
    with pytest.raises(Conflict, match="already"):
        library.add_book(_book())
    identifiers = library.add_segments(book, _segments(5))
    assert [segment.ordinal for segment in library.segments(book)] == [0, 1, 2, 3, 4]
    assert [segment.ordinal for segment in library.segments(book, limit=2, offset=1)] == [1, 2]
    assert library.update_segment(identifiers[0], artifact="blake3:x").artifact == "blake3:x"
    library.remove_segments(book, identifiers[:2])
    assert library.count_segments(book) == 3
    assert library.book("novel").id == library.book(book).id == book
    assert [row.name for row in library.books()] == ["novel"]
    with pytest.raises(NotFound):
        library.book("other")


def test_a_book_in_figures(library: Library) -> None:
    book = library.add_book(_book())
    identifiers = library.add_segments(book, _segments(5))
    for number in (0, 1):
        row = library.publish(
            None, state_of(f"s{number}"), record_of(f"s{number}", kind="segment", graft_point=10 + number)
        )
        library.update_segment(identifiers[number], artifact=row.digest)
    library.set_artifact_state(row.digest, "held", "looked into", "ada")
    held, missing, published = library.segment_states(book)
    assert (missing.state, missing.segments, missing.tokens, missing.stored_bytes) == ("missing", 3, 3, 0)
    assert (held.state, held.segments, held.positions) == ("held", 1, 11)
    assert (published.state, published.positions, published.stored_bytes) == ("published", 10, 300)
    assert library.book_files(book) == ["a.txt"]
    assert library.segment_states("no book") == []


def test_revoked_book_stays_revoked(library: Library) -> None:
    book = library.add_book(_book())
    assert library.update_book(book, state="accepted", digest="d").state == "accepted"
    library.update_book(book, state="revoked")
    with pytest.raises(Conflict, match="does not come back"):
        library.update_book(book, state="accepted")
    assert library.book(book).digest == "d"


def test_segment_artifact_is_no_candidate(library: Library) -> None:
    row = library.publish(None, state_of("a passage"), record_of("a passage about zebras", kind="segment"))
    assert row.state == "published"
    assert library.find_exact(key_of("a passage about zebras")) == []
    assert library.candidates("zebras") == []
    assert bytes(library.read_blob(row.digest)) == state_of("a passage").data
