from __future__ import annotations

import os
from pathlib import Path

import pytest

from library.blobs import BlobStore, blob_path, staged_path
from library.digest import digest_bytes
from library.errors import DigestMismatch, MissingBlob
from library.fsio import RealFileSystem
from library.memory import LARGE

DATA = bytes(range(256)) * 3
DIGEST = digest_bytes(DATA)


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    store = BlobStore(RealFileSystem(tmp_path))
    store.prepare()
    store.prepare()
    return store


def test_round_trip(blobs: BlobStore, tmp_path: Path) -> None:
    assert not blobs.has(DIGEST)
    assert blobs.put(DIGEST, [DATA[:100], DATA[100:]]) == len(DATA)
    assert bytes(blobs.get(DIGEST)) == DATA
    assert blobs.size(DIGEST) == len(DATA)
    assert blob_path(DIGEST) == f"blobs/{DIGEST.hex[:2]}/{DIGEST.hex[2:]}"
    assert (tmp_path / blob_path(DIGEST)).read_bytes() == DATA
    assert blobs.remove(DIGEST) == len(DATA)
    assert blobs.remove(DIGEST) == 0
    with pytest.raises(MissingBlob):
        blobs.get(DIGEST)


def test_staging_is_apart(blobs: BlobStore) -> None:
    blobs.stage(DIGEST, [DATA])
    assert bytes(blobs.get_staged(DIGEST)) == DATA
    assert not blobs.has(DIGEST)
    assert [stray.path for stray in blobs.walk()] == [staged_path(DIGEST)]
    assert blobs.loose_bytes() == len(DATA)
    blobs.unstage(DIGEST)
    assert list(blobs.walk()) == []


@pytest.mark.parametrize("parts", [[DATA, b"x"], [DATA[:-1]], [], [DATA[100:], DATA[:100]]])
def test_other_bytes_are_not_stored(blobs: BlobStore, tmp_path: Path, parts: list[bytes]) -> None:
    with pytest.raises(DigestMismatch):
        blobs.put(DIGEST, parts)
    assert list(blobs.walk()) == []


@pytest.mark.parametrize("damage", [b"", DATA[:-1], DATA + b"x", bytes(len(DATA))])
def test_existing_damaged_blob_is_healed(blobs: BlobStore, tmp_path: Path, damage: bytes) -> None:
    blobs.put(DIGEST, [DATA])
    (tmp_path / blob_path(DIGEST)).write_bytes(damage)
    blobs.put(DIGEST, [DATA])
    assert bytes(blobs.get(DIGEST)) == DATA
    assert [path.read_bytes() for path in (tmp_path / "quarantine").iterdir()] == [damage]


def test_existing_good_blob_is_not_written_again(blobs: BlobStore, tmp_path: Path) -> None:
    blobs.put(DIGEST, [DATA])
    before = (tmp_path / blob_path(DIGEST)).stat().st_ino
    blobs.put(DIGEST, [DATA])
    assert (tmp_path / blob_path(DIGEST)).stat().st_ino == before


@pytest.mark.parametrize("bit", range(8))
def test_every_flipped_bit_is_refused(blobs: BlobStore, tmp_path: Path, bit: int) -> None:
    blobs.put(DIGEST, [DATA])
    path = tmp_path / blob_path(DIGEST)
    for position in range(len(DATA)):
        damaged = bytearray(DATA)
        damaged[position] ^= 1 << bit
        path.write_bytes(damaged)
        with pytest.raises(DigestMismatch):
            blobs.get(DIGEST)


@pytest.mark.parametrize("position", [0, LARGE - 1, LARGE, 2 * LARGE + 4])
def test_a_flipped_bit_in_any_piece_of_a_large_blob_is_refused(blobs: BlobStore, tmp_path: Path, position: int) -> None:
    data = bytearray(os.urandom(64) * (LARGE // 32) + b"the last piece")
    digest = digest_bytes(data)
    blobs.put(digest, [data])
    assert blobs.get(digest) == data
    data[position] ^= 1
    (tmp_path / blob_path(digest)).write_bytes(data)
    with pytest.raises(DigestMismatch):
        blobs.get(digest)


def test_twice_set_aside_keeps_both(blobs: BlobStore, tmp_path: Path) -> None:
    for content in (b"one", b"two"):
        blobs.fs.mkdir(f"blobs/{DIGEST.hex[:2]}")
        (tmp_path / blob_path(DIGEST)).write_bytes(content)
        assert blobs.set_aside(blob_path(DIGEST)) is not None
    assert blobs.set_aside(blob_path(DIGEST)) is None
    assert {path.read_bytes() for path in (tmp_path / "quarantine").iterdir()} == {b"one", b"two"}
