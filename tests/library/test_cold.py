from __future__ import annotations

import os
from pathlib import Path

import pytest

from library.audit import now
from library.blobs import blob_path, packed_path
from library.check import check
from library.errors import Conflict, DigestMismatch, MissingBlob
from library.gc import collect
from library.store import Library
from tests.library.stores import Payload, approved, deposit, key_of, record_of, state_of

SIZE = 5000


@pytest.fixture
def library(tmp_path: Path):
    with Library.open(tmp_path / "lib", actor="ada") as opened:
        yield opened


def _paths(library: Library, text: str) -> tuple[Path, Path]:
    digest = state_of(text, SIZE).digest
    return library.root / blob_path(digest), library.root / packed_path(digest)


def test_packed_bytes_come_back_the_same(library: Library) -> None:
    row = deposit(library, "one", SIZE)
    raw, packed = _paths(library, "one")
    used = library.used_bytes()
    packed_row = library.pack(row.digest)
    assert (packed_row.compression, packed_row.stored_bytes) == ("planes-zstd", packed.stat().st_size)
    assert not raw.exists()
    assert library.used_bytes() == used - SIZE + packed.stat().st_size < used
    assert bytes(library.read_blob(row.digest)) == state_of("one", SIZE).data
    assert library.pack(row.digest).stored_bytes == packed_row.stored_bytes
    assert check(library, read_data=True, grace=0).findings == ()
    assert collect(library, grace=0).removed == ()
    back = library.unpack(row.digest)
    assert (back.compression, back.stored_bytes) == ("none", SIZE)
    assert raw.exists()
    assert not packed.exists()
    assert [entry.action for entry in library.log(2)] == ["artifact.unpack", "artifact.pack"]


def test_what_does_not_get_smaller_stays_raw(library: Library) -> None:
    noise = Payload(os.urandom(500))
    row = library.publish(approved(library, "noise"), noise, record_of("noise"))
    assert library.pack(row.digest).compression == "none"
    assert bytes(library.read_blob(row.digest)) == noise.data
    assert check(library, read_data=True, grace=0).findings == ()


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "raw bytes"])
def test_damaged_packed_blob_is_quarantined(library: Library, damage: str) -> None:
    row = deposit(library, "one", SIZE)
    library.pack(row.digest)
    _, packed = _paths(library, "one")
    data = bytearray(packed.read_bytes())
    data[-1] ^= 1
    changed = {"flip": data, "cut": data[:-5], "empty": b"", "raw bytes": state_of("one", SIZE).data}[damage]
    packed.write_bytes(changed)
    assert [finding.kind for finding in check(library, read_data=True).damage] == ["corrupt"]
    with pytest.raises(DigestMismatch):
        library.read_blob(row.digest)
    assert library.artifact(row.digest).state == "quarantined"
    assert not packed.exists()
    assert library.find_exact(key_of("one")) == []


def test_missing_packed_blob_is_named(library: Library) -> None:
    row = deposit(library, "one", SIZE)
    library.pack(row.digest)
    _paths(library, "one")[1].unlink()
    with pytest.raises(MissingBlob):
        library.read_blob(row.digest)
    assert [finding.kind for finding in check(library).damage] == ["missing"]


def test_deposit_again_and_eviction_leave_no_second_file(library: Library) -> None:
    row = deposit(library, "one", SIZE)
    library.pack(row.digest)
    again = library.publish(row.attempt_id, state_of("one", SIZE), record_of("one"))
    assert again.compression == "none"
    assert collect(library, grace=0).removed == (packed_path(state_of("one", SIZE).digest),)
    library.pack(row.digest)
    assert library.evict(quota_bytes=0) == [row.digest]
    assert not any(path.exists() for path in _paths(library, "one"))


def test_only_cold_unpinned_ones_are_packed(library: Library) -> None:
    old, pinned = deposit(library, "old", SIZE).digest, deposit(library, "pinned", SIZE).digest
    library.pin(pinned, "ada")
    border = now()
    new = deposit(library, "new", SIZE).digest
    assert library.pack_cold(border) == [old]
    assert library.artifact(new).compression == library.artifact(pinned).compression == "none"
    library.revoke(new, reason="wrong", actor="ada")
    with pytest.raises(Conflict):
        library.pack(new)
