"""The use cases of books, for the page and the command line: build, accept, ask, pack, drop, revoke.

Long work goes through the engine's one worker. Says nothing of who may do what: that is the caller's to check.
Imports no model before a job needs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.books import curate, texts
from core.books.curate import BookView
from core.jobs import Context, Handler
from core.requests import text_of
from library import uploads
from library.errors import NotFound, UsageError
from library.tables import Book, Segment

if TYPE_CHECKING:
    from core.engine import Engine

NAME_LENGTH = 100
MAX_FILES = 50


class Desk:
    """One engine's books. Safe to call from any thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._library = engine, engine.library

    @property
    def handlers(self) -> dict[str, Handler]:
        """What the worker runs for each kind of job."""
        return {"ingest": self._ingest, "book": self._ask, "pack": self._pack, "drop": self._drop}

    # queueing

    def build(
        self, source: str, book: str, *, by: str, segment_tokens: int | None = None, replace: bool = False
    ) -> str:
        """Queue making a book of a file or folder of this machine, or bringing it up to date; the job's id.
        `replace`: it may be made of another source than before.

        What can be refused without reading a file or loading the model is refused at once: `NotFound`, `UsageError`.
        """
        texts.names(Path(source).expanduser())
        payload = {"source": source, "book": _name(book), "segment_tokens": segment_tokens, "replace": replace}
        return self._engine.worker.enqueue("ingest", payload, by)

    def build_from(
        self, files: Sequence[tuple[str, bytes]], book: str, *, by: str, segment_tokens: int | None = None
    ) -> str:
        """Queue making a book of files that somebody sent, (name, bytes) each. They join those of the book that were
        sent before; one of the same name takes the earlier one's place."""
        name = _name(book)
        if not files:
            raise UsageError("choose a text, Markdown or PDF file first")
        if len(files) > MAX_FILES:
            raise UsageError(f"at most {MAX_FILES} files are taken at once")
        for file, _ in files:
            texts.check_kind(Path(uploads.plain_name(file)))
        for file, data in files:
            uploads.keep(self._library, name, file, data)
        return self.resume(name, by=by, segment_tokens=segment_tokens)

    def resume(self, book: str, *, by: str, segment_tokens: int | None = None) -> str:
        """Queue going on with a book from the files that were sent for it. `NotFound` if there are none."""
        name = _name(book)
        folder = uploads.kept(self._library, name)
        if folder is None:
            raise NotFound(
                f"the files of book {name!r} were not sent to this page: go on where it was begun, with "
                "`context ingest`, or send them here"
            )
        return self.build(str(folder), name, by=by, segment_tokens=segment_tokens)

    def ask(self, book: str, question: str, *, by: str, segments: int | None = None) -> str:
        """Queue a question to an accepted book, put to its `segments` likeliest segments."""
        text = text_of(self._engine.settings, question, "question")
        found = self._library.book(book)
        curate.answerable(found)
        return self._engine.worker.enqueue("book", {"book": found.name, "question": text, "segments": segments}, by)

    def pack(self, book: str, *, by: str) -> str:
        """Queue compressing a cold book's states."""
        return self._engine.worker.enqueue("pack", {"book": self._library.book(book).name}, by)

    def drop(self, book: str, *, by: str) -> str:
        """Queue deleting the bytes of a cold book's states."""
        return self._engine.worker.enqueue("drop", {"book": self._library.book(book).name}, by)

    # at once, without the model

    def views(self) -> list[BookView]:
        return [curate.describe(self._library, book.name) for book in self._library.books()]

    def view(self, book: str) -> BookView:
        """Raises `NotFound`."""
        return curate.describe(self._library, book)

    def segments(self, book: str, limit: int, offset: int = 0) -> list[Segment]:
        return self._library.segments(self._library.book(book).id, limit=limit, offset=offset)

    def accept(self, book: str, *, by: str, digest: str | None = None) -> Book:
        """A person's acceptance of the book with that digest."""
        return curate.accept(self._library, book, by, digest=digest)

    def revoke(self, book: str, *, reason: str, by: str) -> list[str]:
        """Take a book out of use for good, or refuse one that waits; the digests of the states that went."""
        return curate.revoke(self._library, book, reason, by)

    # handlers: these run on the worker's thread

    def _ingest(self, context: Context) -> Mapping[str, Any]:
        from core.books.ingest import ingest

        wanted = context.payload
        model = self._engine.model(context)
        source, tokens = Path(wanted["source"]).expanduser(), wanted["segment_tokens"]
        replace = bool(wanted.get("replace"))  # a job that an older version queued does not say
        return ingest(model, self._library, source, wanted["book"], context, tokens, replace=replace).to_json()

    def _ask(self, context: Context) -> Mapping[str, Any]:
        from core.books.ask import SEGMENTS, Question, ask_book

        wanted = context.payload
        model = self._engine.model(context)
        question = Question(wanted["book"], wanted["question"], context.owner, segments=wanted["segments"] or SEGMENTS)
        return ask_book(model, self._library, question, context).to_json()

    def _pack(self, context: Context) -> Mapping[str, Any]:
        name = str(context.payload["book"])
        return {"book": name, "saved_bytes": curate.pack(self._library, name, context.owner, _reporter(context))}

    def _drop(self, context: Context) -> Mapping[str, Any]:
        name = str(context.payload["book"])
        return {"book": name, "dropped": curate.drop(self._library, name, context.owner, _reporter(context))}


def _reporter(context: Context) -> curate.Report:
    def report(done: int, total: int) -> None:
        context.check()
        context.report(phase=f"segment {done + 1} of {total}", tokens=done, budget=total)

    return report


def _name(book: str) -> str:
    name = " ".join(book.split())
    if not name:
        raise UsageError("a book needs a name")
    if len(name) > NAME_LENGTH or not name.isprintable():
        raise UsageError(f"a book's name has at most {NAME_LENGTH} signs, all of which can be printed")
    return name
