"""A source into a book: rows for its segments, then their states one after another; resumable at any point.

What is there is kept, by the text of a segment and the model's identity; a changed source costs only the segments
whose text changed. Knows no page; reports through the job's context.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from core.books.deposit import GONE, deposit, largest_segment
from core.books.memory import give_back
from core.books.record import book_digest, rows, text_key
from core.books.split import SMALLEST, split
from core.books.texts import names, texts
from core.jobs import Context
from core.model import FrozenModel
from core.profiles import encode_plain
from library.errors import Conflict, NotFound, UsageError
from library.store import Library
from library.tables import Book, Segment

DEFAULT_TOKENS = 2048  # of text a segment: small models read this much well, and one answer costs little
_BATCH = 64  # new rows a commit


@dataclass(frozen=True)
class Ingested:
    """What an ingest did. `built`: segments prefilled now; `kept`: those that were there. Tokens are of the text."""

    book: str
    state: str
    digest: str
    segments: int
    built: int
    kept: int
    addressable_tokens: int
    built_tokens: int
    seconds: float

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def ingest(
    model: FrozenModel,
    library: Library,
    source: Path,
    name: str,
    context: Context,
    segment_tokens: int | None = None,
    *,
    replace: bool = False,
) -> Ingested:
    """Make or bring up to date the book called `name`. It is `pending` afterwards, unless nothing changed.

    `replace`: the source may be another one than that of the book so far, which is a `Conflict` otherwise. Raises
    `UsageError`, `NotFound` for a source that cannot be read, `Conflict` for a book that was revoked or belongs to
    another model, `Cancelled` (the next ingest goes on from there), `StorageFull`.
    """
    started = time.perf_counter()
    book = _book(model, library, name, segment_tokens, context.owner)
    context.report(phase="reading the source")
    planned = _planned(model, book, source)
    first = next(planned, None)
    if first is None:
        raise UsageError(f"there is no text in {source}")
    if not book.id:  # only now: a source that cannot be read leaves no book behind
        library.add_book(book)
        book = library.book(name)
    if not replace:
        _same_source(library, book, source, first)
    accepted = book.digest if book.state == "accepted" else None
    total = _sync(library, book, chain([first], planned), context)
    built, tokens = _fill(model, library, book, context)
    digest = book_digest(library, book)
    if library.count_segments(book.id) != total:
        raise Conflict(f"another process changed book {name!r} meanwhile: run the ingest again")
    state = "accepted" if digest == accepted else "pending"
    if (state, digest) != (book.state, book.digest):
        library.update_book(book.id, state=state, digest=digest, actor=context.owner)
    return Ingested(
        book=name,
        state=state,
        digest=digest,
        segments=total,
        built=built,
        kept=total - built,
        addressable_tokens=sum(row.tokens for row in rows(library, book.id)),
        built_tokens=tokens,
        seconds=time.perf_counter() - started,
    )


def _book(model: FrozenModel, library: Library, name: str, segment_tokens: int | None, by: str) -> Book:
    """The book of that name, or a new one that is not in the library yet (its id is empty)."""
    limit = largest_segment(model)
    try:
        book = library.book(name)
    except NotFound:
        wanted = min(DEFAULT_TOKENS, limit) if segment_tokens is None else segment_tokens
        if not SMALLEST <= wanted <= limit:
            room = f"{model.name}'s window of {model.window} leaves {limit} for the text"
            raise UsageError(f"--segment-tokens must be between {SMALLEST} and {limit}: {room}") from None
        return Book(
            id="",
            name=name,
            model=model.name,
            identity=model.identity.digest,
            segment_tokens=wanted,
            created="",
            created_by=by,
        )
    if book.state == "revoked":
        raise Conflict(f"book {name!r} was revoked and does not come back: choose another name")
    if book.identity != model.identity.digest:
        raise Conflict(f"book {name!r} was made with {book.model}, not with this {model.name}: choose another name")
    if segment_tokens is not None and segment_tokens != book.segment_tokens:
        raise UsageError(
            f"book {name!r} has segments of {book.segment_tokens} tokens: choose another name to change it"
        )
    return book


def _same_source(library: Library, book: Book, source: Path, first: Segment) -> None:
    """A name that was taken for another text must not cost that text's book: `Conflict` if no file of the book is in
    the source, nor its beginning (a file may have been renamed) in the book."""
    had = library.book_files(book.id)
    if not had or set(had) & set(names(source)) or any(row.text == first.text for row in rows(library, book.id)):
        return
    more = f" and {len(had) - 3} more" if len(had) > 3 else ""
    raise Conflict(
        f"book {book.name!r} was made of {', '.join(had[:3])}{more}, and {source.name} has none of them: choose "
        "another name, or say --replace to put this text in its place"
    )


@dataclass(frozen=True)
class _Kept:
    """A row as it stands, without its text."""

    id: str
    ordinal: int
    place: tuple[str, str, int, int]
    artifact: str | None


def _sync(library: Library, book: Book, planned: Iterable[Segment], context: Context) -> int:
    """Make the rows those of the source as it is now (`planned`); how many there are.

    Rows are added before others are removed: a crash in between leaves too many, and the next run removes them.
    """
    there: dict[str, list[_Kept]] = defaultdict(list)
    for row in rows(library, book.id):
        place = (row.file, row.file_digest, row.start, row.end)
        there[text_key(row.text)].append(_Kept(row.id, row.ordinal, place, row.artifact))
    # Of two rows for one text the one with a state is taken first; then the one in its place already.
    for same in there.values():
        same.sort(key=lambda kept: (kept.artifact is None, kept.ordinal))
    unused = {kept.id for same in there.values() for kept in same}
    new: list[Segment] = []
    ordinal = 0
    for row in planned:
        context.check()
        row.book_id, row.ordinal = book.id, ordinal
        ordinal += 1
        place = (row.file, row.file_digest, row.start, row.end)
        same = there.get(text_key(row.text), [])
        exact = next((kept for kept in same if (kept.ordinal, kept.place) == (row.ordinal, place)), None)
        if exact is not None:
            same.remove(exact)
            unused.discard(exact.id)
            continue
        if same:
            row.artifact = same.pop(0).artifact
        new.append(row)
        if len(new) >= _BATCH:
            _rebuild_mark(library, book, context)
            library.add_segments(book.id, new, actor=context.owner)
            new = []
    if new or unused:
        _rebuild_mark(library, book, context)
    if new:
        library.add_segments(book.id, new, actor=context.owner)
    if unused:
        library.remove_segments(book.id, sorted(unused), actor=context.owner)
    return ordinal


def _rebuild_mark(library: Library, book: Book, context: Context) -> None:
    """From the first change on the book is being built: it must not answer from a mixture."""
    if book.state != "building":
        library.update_book(book.id, state="building", actor=context.owner)
        book.state = "building"


def _planned(model: FrozenModel, book: Book, source: Path) -> Iterator[Segment]:
    for text in texts(source):
        for piece in split(text.text, book.segment_tokens, lambda part: len(encode_plain(model.tokenizer, part))):
            yield Segment(
                id="",
                book_id=book.id,
                ordinal=0,
                file=text.name,
                file_digest=text.digest,
                start=piece.start,
                end=piece.end,
                tokens=piece.tokens,
                text=text.text[piece.start : piece.end],
            )


def _fill(model: FrozenModel, library: Library, book: Book, context: Context) -> tuple[int, int]:
    """Deposit every segment that has no usable state: (segments, tokens) done now."""
    missing: list[tuple[int, str | None, int]] = []
    for place, row in enumerate(rows(library, book.id)):
        gone = row.artifact is not None and library.artifact(row.artifact).state in GONE
        if row.artifact is None or gone:
            missing.append((place, row.artifact, row.tokens))
    total = sum(tokens for _, _, tokens in missing)
    done, began = 0, time.perf_counter()
    for number, (place, lost, tokens) in enumerate(missing, start=1):
        context.check()
        spent = time.perf_counter() - began
        left = f", {_words(spent * (total - done) / done)} left" if done else ""
        phase = f"segment {number} of {len(missing)}{left}"
        rate = done / spent if done else 0.0
        context.report(phase=phase, tokens=done, budget=total, tokens_per_second=rate, seconds=spent)
        _rebuild_mark(library, book, context)
        (row,) = library.segments(book.id, limit=1, offset=place)
        made = deposit(model, library, book.name, row, cancelled=context.cancelled, replaces=lost)
        library.update_segment(row.id, artifact=made.artifact, actor=context.owner)
        give_back()
        done += tokens
    context.report(phase="done", tokens=done, budget=total)
    return len(missing), done


def _words(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
