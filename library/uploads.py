"""The files that people gave for books, kept until the book is revoked, so that a stopped ingest can go on and a
corrected file can replace an earlier one: `uploads/<of the book's name>/<file name>`.

Knows names and bytes. A person's text is never a path: the folder is a digest, the file name is made of harmless
signs only. Does not know what the files hold.
"""

from __future__ import annotations

import re
import secrets
import unicodedata
from pathlib import Path

from library.blobs import TEMPORARY
from library.database import Database
from library.digest import digest_bytes
from library.fsio import translated, write_durably

UPLOADS = "uploads"
_LONGEST = 80  # characters of a file's name without its ending
_ODD = re.compile(r"[^\w .()+-]+")


def keep(library: Database, book: str, name: str, data: bytes) -> str:
    """Stores a file of a book durably, in place of an earlier one of that name; the name that it goes by."""
    kept = plain_name(name)
    below = _below(book)
    with translated(f"keeping the file {kept}"):
        library.fs.mkdir(UPLOADS)
        library.fs.mkdir(below)
        write_durably(library.fs, f"{below}/{TEMPORARY}{secrets.token_hex(8)}", f"{below}/{kept}", [data])
    return kept


def kept(library: Database, book: str) -> Path | None:
    """The folder with a book's files, or None if there are none."""
    with translated("looking for a book's files"):
        names = [name for name in library.fs.listdir(_below(book)) if not name.startswith(".")]
    return library.root / _below(book) if names else None


def forget(library: Database, book: str) -> None:
    """Deletes a book's files; nothing if there are none."""
    below = _below(book)
    with translated("deleting a book's files"):
        names = library.fs.listdir(below)
        for name in names:
            library.fs.unlink(f"{below}/{name}")
        if names:
            library.fs.fsync_dir(below)


def plain_name(name: str) -> str:
    """The last part of a file's name, odd signs as `_`: no folder, no hidden file, no sign that turns text round."""
    last = unicodedata.normalize("NFC", name).replace("\\", "/").rpartition("/")[2]
    stem, dot, ending = last.rpartition(".")
    if not dot:
        stem, ending = last, ""
    stem = _ODD.sub("_", stem).strip(" ._")[:_LONGEST].rstrip(" .")
    while len(stem.encode()) > 2 * _LONGEST:
        stem = stem[:-1]
    ending = re.sub(r"[^A-Za-z0-9]", "", ending)[:12].lower()
    return (stem or "text") + (f".{ending}" if ending else "")


def _below(book: str) -> str:
    return f"{UPLOADS}/{digest_bytes(book.encode()).hex[:32]}"
