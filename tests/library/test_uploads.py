from __future__ import annotations

from pathlib import Path

import pytest

from library import uploads
from library.check import check
from library.errors import StoreError
from library.store import Library
from tests.ui.hostile import TEXTS


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("notes.md", "notes.md"), ("Über (2).TXT", "Über (2).txt"), ("../../etc/passwd", "passwd"),
        ("C:\\books\\a.pdf", "a.pdf"), (".hidden.md", "hidden.md"), ("a\x00b\n.txt", "a_b.txt"),
        ("\u202egpj.md", "gpj.md"),
        ("", "text"), ("...", "text"), (".txt", "text.txt"), ("a.t/x", "x"), ("x." + "y" * 40, "x." + "y" * 12),
    ],
)  # fmt: skip
def test_a_file_name_becomes_harmless(given: str, kept: str) -> None:
    assert uploads.plain_name(given) == kept


@pytest.mark.parametrize("name", [*TEXTS, "é" * 400 + ".md", "." * 300, "/" * 300])
def test_no_text_becomes_a_path(name: str) -> None:
    kept = uploads.plain_name(name)
    assert kept not in ("", ".", "..")
    assert not set(kept) & set('/\\\0<>"\n\u202e')
    assert kept[0] != "."
    assert len(kept.encode()) <= 200
    assert uploads.plain_name(kept) == kept


def test_files_are_kept_replaced_and_forgotten(library: Library) -> None:
    assert uploads.kept(library, "novel") is None
    uploads.keep(library, "novel", "a.md", b"one")
    uploads.keep(library, "novel", "b.md", b"two")
    uploads.keep(library, "novel", "a.md", b"three")
    uploads.keep(library, "../novel", "a.md", b"other book")
    folder = uploads.kept(library, "novel")
    assert folder is not None
    assert folder.is_relative_to(library.root / uploads.UPLOADS)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {"a.md": b"three", "b.md": b"two"}
    assert check(library).findings == ()
    uploads.forget(library, "novel")
    assert uploads.kept(library, "novel") is None
    assert uploads.kept(library, "../novel") is not None
    uploads.forget(library, "never there")


def test_a_folder_that_was_swapped_for_a_link_is_not_followed(library: Library, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (library.root / uploads.UPLOADS).symlink_to(elsewhere)
    with pytest.raises(StoreError):
        uploads.keep(library, "novel", "a.md", b"one")
    assert list(elsewhere.iterdir()) == []
