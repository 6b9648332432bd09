"""Bundles that must not be imported: paths, links, devices, duplicates, bombs, forged signatures, lies.

Generated from an honest bundle; where the attack is not on a digest or the signature, both are computed anew.
"""

from __future__ import annotations

import ast
import io
import json
import tarfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from library.bundle import Limits, read_bundle
from library.digest import canonical_json, digest_bytes
from library.errors import CorruptError, FormatError, ScionError, StoreError, UntrustedError
from library.signing import Envelope, SigningKey, Statement, Subject, generate_key, sign
from library.ustar import MAX_MEMBER_BYTES, header
from tests.library.bundles import blobs, bundle, record

Members = list[tuple[str, bytes]]


def members(data: bytes) -> Members:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        found = []
        for member in archive:
            body = archive.extractfile(member)
            assert body is not None
            found.append((member.name, body.read()))
        return found


def member(name: str, body: bytes) -> bytes:
    return header(name, len(body)) + body + bytes(-len(body) % 512)


def pack(items: Members) -> bytes:
    return b"".join(member(name, body) for name, body in items) + bytes(1024)


def foreign(name: str, body: bytes = b"", kind: bytes = tarfile.REGTYPE, **fields: Any) -> bytes:
    """A member as another tar program would write it, of any kind."""
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.type = len(body), 0o644, kind
    for key, value in fields.items():
        setattr(info, key, value)
    return info.tobuf(tarfile.GNU_FORMAT) + body + bytes(-len(body) % 512)


def relist(items: Members, change: Callable[[dict[str, Any]], object]) -> Members:
    """The members with the listing changed and made canonical again."""
    listing = json.loads(items[0][1])
    change(listing)
    return [(items[0][0], canonical_json(listing)), *items[1:]]


@pytest.fixture(scope="module")
def honest() -> bytes:
    return bundle(2)


@pytest.fixture
def key(tmp_path: Path) -> SigningKey:
    return generate_key(tmp_path / "key.pem")


def refused(data: bytes, *errors: type[Exception], accepted: int | None = 0, **options: Any) -> str:
    """Reads `data`, which must raise one of `errors` after `accepted` artifacts; returns the error's text."""
    seen: list[str] = []
    with pytest.raises(errors or (FormatError,)) as caught:
        read_bundle(io.BytesIO(data), lambda r, a, b: seen.append(r.digest), **options)
    assert accepted is None or len(seen) == accepted
    return str(caught.value)


def test_the_tools_of_this_file_are_honest(honest: bytes) -> None:
    assert pack(members(honest)) == honest
    assert pack(relist(members(honest), lambda listing: None)) == honest
    assert len(read_bundle(io.BytesIO(honest)).records) == 2


EVIL_MEMBERS = {
    "parent folder": foreign("../../etc/passwd", b"x"),
    "absolute": foreign("/etc/passwd", b"x"),
    "hidden parent": foreign("blobs/../../x", b"x"),
    "symbolic link": foreign("blobs/link", kind=tarfile.SYMTYPE, linkname="/etc/passwd"),
    "hard link": foreign("blobs/link", kind=tarfile.LNKTYPE, linkname="listing.json"),
    "character device": foreign("dev", kind=tarfile.CHRTYPE, devmajor=1, devminor=5),
    "block device": foreign("dev", kind=tarfile.BLKTYPE, devmajor=8),
    "pipe": foreign("pipe", kind=tarfile.FIFOTYPE),
    "folder": foreign("blobs", kind=tarfile.DIRTYPE),
    "long name": foreign("a" * 300, b"x"),
    "pax header": foreign("pax", b"30 path=../../etc/passwd\n", kind=tarfile.XHDTYPE),
    "global pax header": foreign("pax", b"30 path=../../etc/passwd\n", kind=tarfile.XGLTYPE),
    "sparse": foreign("sparse", kind=tarfile.GNUTYPE_SPARSE),
    "contiguous": foreign("cont", b"x", kind=tarfile.CONTTYPE),
    "set user id": foreign("a", b"x", mode=0o4755),
    "owner": foreign("a", b"x", uid=1000, uname="root"),
    "undeclared": member("extra", b"x"),
    "undeclared blob": member("blobs/" + "a" * 64, b"x"),
    "undeclared record": member("records/" + "a" * 64 + ".json", b"{}"),
    "second listing": member("listing.json", b"{}"),
    "late signature": member("signature.json", b"{}"),
    "upper case": member("blobs/" + "a" * 64, b"").replace(b"a" * 64, b"A" * 64),
    "newline": member("listing.json", b"").replace(b"json", b"js\nn"),
}


@pytest.mark.parametrize("evil", EVIL_MEMBERS.values(), ids=EVIL_MEMBERS)
def test_an_evil_member_anywhere_refuses_the_bundle(honest: bytes, evil: bytes, tmp_path: Path) -> None:
    pieces = [member(name, body) for name, body in members(honest)]
    for place in range(len(pieces) + 1):
        refused(b"".join((*pieces[:place], evil, *pieces[place:], bytes(1024))), CorruptError, accepted=None)
    assert not list(tmp_path.iterdir())


def test_members_in_another_order_or_twice_or_missing(honest: bytes) -> None:
    items = members(honest)
    refused(pack([items[0], items[3], items[4], items[1], items[2]]))
    refused(pack([items[0], items[2], items[1], *items[3:]]))
    refused(pack([*items, items[2]]), accepted=2)
    refused(pack([*items[:3], items[2], *items[3:]]), accepted=1)
    refused(pack(items[1:]))
    refused(pack(items[:-1]), accepted=1)
    refused(pack([]))


@pytest.mark.parametrize("offset", [0, 1, 511, 512, 513, 1023, 1024, 2000])
def test_nothing_may_follow_and_nothing_may_be_missing(honest: bytes, offset: int) -> None:
    refused(honest + bytes(offset + 1), accepted=2)
    refused(honest[: len(honest) - offset - 1], accepted=None)
    refused(honest[:offset])


def test_padding_must_be_empty(honest: bytes) -> None:
    items = members(honest)
    data = bytearray(honest)
    data[512 + len(items[0][1])] = 1
    assert "padding" in refused(bytes(data))


def test_every_flipped_byte_is_refused() -> None:
    """All but the listing's own text (its time), which only a signature covers: see the next test."""
    honest = bundle(1)
    created = honest.index(b'"created":"2026') + len('"created":"')
    free = range(created, created + len("2026-01-02T00:00:00.000000Z"))
    passed = []
    data = bytearray(honest)
    for position in range(len(data)):
        data[position] ^= 0x01
        try:
            read_bundle(io.BytesIO(data))
            passed.append(position)
        except CorruptError:
            pass
        data[position] ^= 0x01
    assert set(passed) <= set(free)


def test_every_flipped_byte_of_a_signed_bundle_is_refused(key: SigningKey) -> None:
    data = bytearray(bundle(1, signer=key))
    for position in range(len(data)):
        data[position] ^= 0x04
        with pytest.raises((CorruptError, UntrustedError)):
            read_bundle(io.BytesIO(data), trusted={key.id: key.public}, require_signature=True)
        data[position] ^= 0x04


@pytest.mark.parametrize("module", ["bundle", "ustar", "records", "artifact", "compression"])
def test_what_reads_foreign_bytes_opens_no_file(module: str) -> None:
    """No path in a bundle can be followed, and no link swapped in, where there is nothing that opens a path."""
    source = Path(__file__).resolve().parents[2] / "library" / f"{module}.py"
    tree = ast.parse(source.read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not imported & {"pathlib", "io", "shutil", "tarfile", "zipfile", "tempfile", "library.fsio"}
    calls = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    assert not {call for call in calls if call in ("open", "eval", "exec") or call.startswith("os.")} - {"os.cpu_count"}


# Bombs


class Endless:
    """A stream that starts with `front` and goes on with zeros for ever; counts what was taken."""

    def __init__(self, front: bytes, filler: bytes = b"\0") -> None:
        self._front, self._filler, self.taken = io.BytesIO(front), filler, 0

    def read(self, size: int, /) -> bytes:
        data = self._front.read(size) or self._filler * size
        self.taken += len(data)
        return data


def test_endless_streams_stop_at_the_declared_size(honest: bytes) -> None:
    for front in (b"", honest[:512], honest[:-1024], honest):
        for filler in (b"\0", b"x"):
            stream = Endless(front, filler)
            with pytest.raises(FormatError):
                read_bundle(stream)
            assert stream.taken <= len(front) + 1025 + len(honest)


def test_40_gigabytes_of_zeros_are_not_read(honest: bytes) -> None:
    """A blob that is declared as large as the format allows, followed by zeros without end."""
    items = members(honest)

    def enlarge(listing: dict[str, Any]) -> None:
        listing["entries"][0]["size"] = MAX_MEMBER_BYTES

    changed = relist(items, enlarge)
    front = b"".join(member(name, body) for name, body in changed[:2]) + header(items[2][0], MAX_MEMBER_BYTES)
    stream = Endless(front)
    with pytest.raises(StoreError):
        read_bundle(stream, limits=Limits(blob_bytes=1 << 30))
    assert stream.taken < len(front)
    tracemalloc.start()
    try:
        with pytest.raises(CorruptError):
            read_bundle(io.BytesIO(front + bytes(1 << 20)))
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


def test_a_size_beyond_the_declared_one_is_refused(honest: bytes) -> None:
    items = members(honest)
    for index in (1, 2):
        longer = [*items]
        longer[index] = (items[index][0], items[index][1] + b"\0")
        assert "is due" in refused(pack(longer))


def test_listing_bombs() -> None:
    many = {"created": "", "entries": [], "format": "scion-bundle", "version": 1}
    text = canonical_json(many)
    entry = canonical_json(
        {"digest": "blake3:" + "0" * 64, "record": "blake3:" + "0" * 64, "record_size": 1, "size": 1}
    )
    for body in (
        text.replace(b"[]", b"[" + b",".join([entry] * 100_001) + b"]"),
        text.replace(b"[]", b"[" * 100_000 + b"]" * 100_000),
        text.replace(b"1}", b"9" * 100_000 + b"}"),
    ):
        refused(pack([("listing.json", body)]), FormatError, StoreError)


# Lies


def set_entry(key: str, value: Any) -> Callable[[dict[str, Any]], object]:
    return lambda listing: listing["entries"][0].__setitem__(key, value)


LISTINGS: dict[str, Callable[[dict[str, Any]], object]] = {
    "newer version": lambda listing: listing.__setitem__("version", 2),
    "other format": lambda listing: listing.__setitem__("format", "zip"),
    "unknown field": lambda listing: listing.__setitem__("extra", 1),
    "unknown entry field": set_entry("path", "../x"),
    "missing field": lambda listing: listing.pop("created"),
    "digest as path": set_entry("digest", "../../../etc/passwd"),
    "digest with a newline": set_entry("digest", "blake3:" + "0" * 64 + "\n"),
    "digest in upper case": set_entry("digest", "BLAKE3:" + "0" * 64),
    "no size": set_entry("size", 0),
    "negative size": set_entry("size", -1),
    "size as text": set_entry("size", "5"),
    "other order": lambda listing: listing["entries"].reverse(),
    "twice": lambda listing: listing["entries"].__setitem__(1, listing["entries"][0]),
}


@pytest.mark.parametrize("attack", LISTINGS.values(), ids=LISTINGS)
def test_listings_are_strict(honest: bytes, attack: Callable[[dict[str, Any]], object]) -> None:
    refused(pack(relist(members(honest), attack)))


def test_a_newer_version_is_named(honest: bytes) -> None:
    data = pack(relist(members(honest), LISTINGS["newer version"]))
    assert "bundle version 2 is newer than 1" in refused(data)


def replace_record(items: Members, body: bytes) -> Members:
    """The first record replaced, the listing made to fit."""

    def fit(listing: dict[str, Any]) -> None:
        listing["entries"][0] |= {"record": str(digest_bytes(body)), "record_size": len(body)}

    changed = relist(items, fit)
    changed[1] = (changed[1][0], body)
    return changed


def test_records_are_strict(honest: bytes) -> None:
    items = members(honest)
    value = json.loads(items[1][1])
    other = record(b"another").model_dump(mode="json")
    for body in (
        b"{}",
        b"[]",
        items[1][1] + b" ",
        json.dumps(value, sort_keys=True).encode(),
        canonical_json({**value, "path": "/etc/passwd"}),
        canonical_json({**value, "decisions": [{**value["decisions"][0], "action": "promote"}]}),
        canonical_json({**value, "attempt": {**value["attempt"], "id": "../../x"}}),
        canonical_json({**value, "problem": {**value["problem"], "id": "x\n"}}),
        canonical_json(other),
    ):
        refused(pack(replace_record(items, body)))


def test_a_blob_that_has_its_digest_but_is_no_artifact(honest: bytes) -> None:
    """Size, digest, listing and record are all right; only the strict reader can refuse it."""
    for blob in (b"PK\x03\x04zip", b"\x80\x04cposix\nsystem\n.", blobs(1)[0] + b"\0"):
        one = record(blob).model_dump(mode="json")
        body = canonical_json(one)
        entry = {
            "digest": one["digest"],
            "record": str(digest_bytes(body)),
            "record_size": len(body),
            "size": len(blob),
        }
        listing = {"created": "", "entries": [entry], "format": "scion-bundle", "version": 1}
        name = one["digest"].removeprefix("blake3:")
        front = [("listing.json", canonical_json(listing)), (f"records/{name}.json", body)]
        refused(pack([*front, (f"blobs/{name}", blob)]))
        read_from = pack([*front, (f"blobs/{name}", blob[:-1] + b"!")])
        refused(read_from, CorruptError)


# Signatures


def with_signature(data: bytes, envelope: bytes) -> bytes:
    items = [item for item in members(data) if item[0] != "signature.json"]
    return pack([items[0], ("signature.json", envelope), *items[1:]])


def test_signatures_of_others_and_of_other_bundles(tmp_path: Path, key: SigningKey, honest: bytes) -> None:
    trusted = {key.id: key.public}
    other = generate_key(tmp_path / "other.pem")
    mine = dict(members(bundle(1, signer=key)))["signature.json"]
    theirs = dict(members(bundle(2, signer=other)))["signature.json"]
    posing = Envelope.parse(theirs)
    attacks = {
        "my signature of another bundle": mine,
        "a stranger under my name": Envelope(posing.payload, key.id, posing.signature).to_bytes(),
        "my signature of another kind of statement": sign(Statement((), "urn:other", {}), key).to_bytes(),
        "my signature of the artifacts alone": sign(
            Statement((Subject("listing.json", digest_bytes(b"other")),), "urn:scion:bundle:v1", {}), key
        ).to_bytes(),
    }
    for envelope in attacks.values():
        for required in (False, True):
            refused(with_signature(honest, envelope), UntrustedError, trusted=trusted, require_signature=required)
    refused(with_signature(honest, theirs), UntrustedError, trusted=trusted, require_signature=True)
    accepted = read_bundle(io.BytesIO(with_signature(honest, theirs)), trusted=trusted)
    assert (accepted.signed_by, accepted.claimed_key) == (None, other.id)
    refused(with_signature(honest, b"{}"))


def test_a_changed_record_breaks_the_signature(key: SigningKey) -> None:
    """The records are covered through the listing: a forged decision under an honest artifact does not pass."""
    signed = members(bundle(1, signer=key))
    items = [signed[0], *signed[2:]]
    value = json.loads(items[1][1])
    value["decisions"][0]["reviewer"] = "mallory"
    forged = replace_record(items, canonical_json(value))
    assert len(read_bundle(io.BytesIO(pack(forged))).records) == 1
    with pytest.raises(ScionError):
        read_bundle(io.BytesIO(with_signature(pack(forged), signed[1][1])), trusted={key.id: key.public})
    refused(with_signature(pack(forged), signed[1][1]), UntrustedError, trusted={key.id: key.public})
