"""A book's source: text, Markdown and PDF files, alone or in a folder, as text with the digest of the file's bytes.

What is read is data: it is decoded strictly, never executed and never a path. Knows no model and no library.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from library.digest import digest_bytes
from library.errors import NotFound, UsageError

PLAIN = (".txt", ".text", ".md", ".markdown", ".rst")
PDF = ".pdf"
MAX_FILE_BYTES = 256 << 20
_PDF_HELP = "reading PDF needs the package pypdf: pip install pypdf (its version is in requirements.txt)"


@dataclass(frozen=True)
class Text:
    """One file: its name below the source, the digest of its bytes, and its text (a PDF's: pages, a blank line apart).

    Ranges of characters count in `text`.
    """

    name: str
    digest: str
    text: str


def names(source: Path) -> list[str]:
    """The files of a source in order: the file itself, or those of known kinds in a folder (hidden ones and links left
    out). Raises `NotFound` if there is nothing, `UsageError` for a file of another kind."""
    if source.is_file():
        check_kind(source)
        return [source.name]
    if not source.is_dir():
        raise NotFound(f"there is no file or folder {source}")
    found = sorted(
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.suffix.lower() in (*PLAIN, PDF) and path.is_file() and not _hidden(path, source)
    )
    if not found:
        raise NotFound(f"the folder {source} has no text, Markdown or PDF file")
    return found


def read(source: Path, name: str) -> Text:
    """One of the files that `names` gave. Raises `NotFound`, `UsageError` for what is not readable text."""
    path = source if source.is_file() else source / name
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise UsageError(f"{name} is larger than {MAX_FILE_BYTES >> 20} MiB: split it")
        raw = path.read_bytes()
    except OSError as error:
        raise NotFound(f"cannot read {path}: {error.strerror}") from error
    text = _pdf(raw, name) if path.suffix.lower() == PDF else _plain(raw, name)
    return Text(name, str(digest_bytes(raw)), text)


def texts(source: Path) -> Iterator[Text]:
    """The source's files, one in memory at a time."""
    for name in names(source):
        yield read(source, name)


def _hidden(path: Path, source: Path) -> bool:
    parts = path.relative_to(source).parts
    links = [source.joinpath(*parts[: n + 1]).is_symlink() for n in range(len(parts))]
    return any(part.startswith(".") for part in parts) or any(links)


def check_kind(path: Path) -> None:
    """Raises `UsageError` for a file of a kind that no book is made of."""
    if path.suffix.lower() not in (*PLAIN, PDF):
        known = ", ".join((*PLAIN, PDF))
        raise UsageError(f"cannot read {path.name}: a book is made of {known} files")


def _plain(raw: bytes, name: str) -> str:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not UTF-8 text (byte {error.start}): convert it") from error
    if "\x00" in text:
        raise UsageError(f"{name} holds NUL characters: it is not text")
    return text


def _pdf(raw: bytes, name: str) -> str:
    try:
        from pypdf import PdfReader
        from pypdf.errors import PyPdfError
    except ImportError as error:
        raise UsageError(_PDF_HELP) from error
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it warns at every oddity of a file; errors are raised
    try:
        reader = PdfReader(io.BytesIO(raw), strict=False)
        if reader.is_encrypted and not reader.decrypt(""):
            raise UsageError(f"{name} is encrypted: save it without a password")
        pages = [page.extract_text() for page in reader.pages]
    except (PyPdfError, ValueError, KeyError, TypeError, RecursionError, NotImplementedError) as error:
        raise UsageError(f"{name} is not a readable PDF: {str(error)[:200]}") from error
    text = "\n\n".join(page.strip() for page in pages).replace("\x00", "")
    if not text.strip():
        raise UsageError(f"{name} holds no text: a scanned PDF needs character recognition first")
    return text
