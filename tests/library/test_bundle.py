"""Bundles: what goes out comes in, verified, in one stream, with or without a signature."""

from __future__ import annotations

import io
import os
import tarfile
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from library.artifact import Artifact
from library.bundle import BundleEntry, Limits, read_bundle, write_bundle
from library.digest import Digest, digest_bytes
from library.errors import DigestMismatch, FormatError, StoreError, UntrustedError, UsageError
from library.records import BundleRecord
from library.signing import SigningKey, generate_key
from library.ustar import MAX_MEMBER_BYTES, header
from tests.library.bundles import CREATED, blobs, bundle, entries


@pytest.fixture
def key(tmp_path: Path) -> SigningKey:
    return generate_key(tmp_path / "key.pem")


def collect(data: bytes, **options: object) -> tuple[dict[str, bytes], object]:
    got: dict[str, bytes] = {}

    def accept(record: BundleRecord, artifact: Artifact, blob: memoryview) -> None:
        assert str(artifact.digest) == record.digest == str(digest_bytes(blob))
        got[record.digest] = bytes(blob)

    return got, read_bundle(io.BytesIO(data), accept, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [0, 1, 2, 20])
def test_round_trip(count: int) -> None:
    contents = blobs(count)
    got, found = collect(bundle(count))
    assert got == {str(digest_bytes(blob)): blob for blob in contents}
    wanted = {entry.record.digest: entry.record for entry in entries(contents)}
    assert {record.digest: record for record in found.records} == wanted  # type: ignore[attr-defined]
    assert found.listing.created == CREATED  # type: ignore[attr-defined]


def test_the_same_entries_give_the_same_bytes_in_any_order(key: SigningKey) -> None:
    wanted = entries(blobs(3))
    assert bundle(entries=wanted, signer=key) == bundle(entries=wanted[::-1], signer=key)


def test_any_tar_program_can_list_it() -> None:
    with tarfile.open(fileobj=io.BytesIO(bundle(2))) as archive:
        names = archive.getnames()
        assert names[0] == "listing.json"
        assert [name.partition("/")[0] for name in names[1:]] == ["records", "blobs"] * 2
        assert all(member.isreg() for member in archive)
        for name in names[2::2]:
            member = archive.extractfile(name)
            assert member is not None
            assert digest_bytes(member.read()) == Digest(name.partition("/")[2])


def test_it_is_a_stream_in_both_directions() -> None:
    """Through a pipe, which can neither seek nor be read ahead."""
    out, into = os.pipe()
    wanted = entries(blobs(5))

    def export() -> None:
        with open(into, "wb") as target:
            write_bundle(target, wanted, created=CREATED)

    thread = threading.Thread(target=export)
    thread.start()
    with open(out, "rb") as source:
        found = read_bundle(source)
    thread.join()
    assert len(found.records) == 5


def test_signed_by_a_trusted_key(key: SigningKey) -> None:
    data = bundle(2, signer=key)
    found = read_bundle(io.BytesIO(data), trusted={key.id: key.public}, require_signature=True)
    assert found.signed_by == found.claimed_key == key.id
    stranger = read_bundle(io.BytesIO(data))
    assert (stranger.signed_by, stranger.claimed_key) == (None, key.id)
    assert read_bundle(io.BytesIO(bundle(2))).claimed_key is None


def test_a_required_signature_is_asked_for_before_any_artifact(tmp_path: Path, key: SigningKey) -> None:
    other = generate_key(tmp_path / "other.pem")
    for data in (bundle(2), bundle(2, signer=other)):
        seen: list[str] = []
        with pytest.raises(UntrustedError):
            read_bundle(
                io.BytesIO(data),
                lambda record, artifact, blob, seen=seen: seen.append(record.digest),
                trusted={key.id: key.public},
                require_signature=True,
            )
        assert not seen


def test_export_refuses_what_is_not_what_it_says() -> None:
    first, second = entries(blobs(2))
    with pytest.raises(UsageError, match="twice"):
        bundle(entries=[first, first])
    with pytest.raises(UsageError, match="fit"):
        bundle(entries=[replace(first, size=MAX_MEMBER_BYTES + 1)])
    for wrong in (
        replace(first, open_blob=second.open_blob),
        replace(first, size=first.size - 1),
        replace(first, size=first.size + 1),
        replace(first, open_blob=list),
    ):
        with pytest.raises(DigestMismatch):
            bundle(entries=[wrong])


def test_export_writes_one_chunk_at_a_time() -> None:
    """The blobs are opened one after the other, each when its turn comes."""
    opened: list[str] = []

    def watched(entry: BundleEntry) -> BundleEntry:
        def open_blob() -> list[bytes]:
            opened.append(entry.record.digest)
            return list(map(bytes, entry.open_blob()))

        return replace(entry, open_blob=open_blob)

    class Target(io.BytesIO):
        def write(self, data: object, /) -> int:
            at.append(len(opened))
            return super().write(data)  # type: ignore[arg-type]

    at: list[int] = []
    write_bundle(Target(), [watched(entry) for entry in entries(blobs(3))], created=CREATED)
    assert opened == sorted(opened)
    assert at == sorted(at)
    assert set(at) == {0, 1, 2, 3}


LIMITS = {
    "listing": Limits(listing_bytes=100),
    "record": Limits(record_bytes=100),
    "blob": Limits(blob_bytes=1000),
    "total": Limits(total_bytes=4000),
    "entries": Limits(entries=1),
}


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
def test_limits_are_kept_before_any_artifact_is_read(limits: Limits) -> None:
    seen: list[str] = []
    with pytest.raises(StoreError):
        read_bundle(io.BytesIO(bundle(2)), lambda r, a, b: seen.append(r.digest), limits=limits)
    assert not seen


def test_headers_have_one_form() -> None:
    assert len(header("listing.json", 5)) == 512
    for name in ("", "/a", "../a", "a/../b", "a/b/c", "A", "a\0", "a\n", "a" * 101, "ä", "."):
        with pytest.raises(FormatError):
            header(name, 5)
    for size in (-1, MAX_MEMBER_BYTES + 1):
        with pytest.raises(FormatError):
            header("a", size)
