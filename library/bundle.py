"""Bundles: artifacts with their records in one file, written and read as a stream.

Knows the framing (docs/format.md, section 9), digests and signatures. Knows no database and opens no file: the caller
hands in streams, and a place to put each verified blob. Everything read is foreign: nothing is parsed before its
size and digest are what the listing declares, and nothing is read beyond a declared size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from pydantic import ValidationError

from library.artifact import MAX_BRACKETS, Artifact, decode
from library.digest import Digest, canonical_json, digest_bytes
from library.errors import DigestMismatch, FormatError, StoreError, UntrustedError, UsageError
from library.manifest import Frozen, strict_json
from library.records import BundleRecord, Listed, Listing
from library.signing import Envelope, PublicKey, SigningKey, Statement, Subject, sign, verify
from library.ustar import MAX_MEMBER_BYTES, Buffer, Readable, Reader, Writable, write_end, write_member

BUNDLE_VERSION = 1
LISTING, SIGNATURE = "listing.json", "signature.json"
PREDICATE_TYPE = "urn:scion:bundle:v1"
Model = TypeVar("Model", bound=Frozen)


@dataclass(frozen=True)
class BundleEntry:
    """An artifact to export. `open_blob` gives its raw (uncompressed) bytes, `size` of them, when its turn comes."""

    record: BundleRecord
    size: int
    open_blob: Callable[[], Iterable[Buffer]]


@dataclass(frozen=True)
class Limits:
    """What an importer puts up with, in bytes and artifacts; everything is refused as soon as it is declared."""

    listing_bytes: int = 24 << 20
    record_bytes: int = 8 << 20
    blob_bytes: int = MAX_MEMBER_BYTES
    total_bytes: int = 1 << 40
    entries: int = 100_000


@dataclass(frozen=True)
class BundleContents:
    """A bundle that was read to its end. `signed_by` is the id of the trusted key that signed it, or None.

    `claimed_key` is the key id that the envelope names, trusted or not; None without an envelope.
    """

    listing: Listing
    digest: Digest
    signed_by: str | None
    claimed_key: str | None
    records: tuple[BundleRecord, ...]


# Gets each artifact once it is verified: its record, the decoded artifact, and the bytes to be stored.
Accept = Callable[[BundleRecord, Artifact, memoryview], None]


def write_bundle(
    stream: Writable, entries: Iterable[BundleEntry], *, created: str, signer: SigningKey | None = None
) -> Listing:
    """Writes all entries as one bundle, in order of digest, whatever order they come in; the same entries, time and
    key give the same bytes. Holds the records in memory, one chunk of a blob at a time.

    Raises `UsageError` for an artifact given twice or too large, `DigestMismatch` if a blob is not what its record
    says: what was written so far is then worthless.
    """
    ordered = sorted(entries, key=lambda entry: entry.record.digest)
    if len({entry.record.digest for entry in ordered}) != len(ordered):
        raise UsageError("an artifact was given twice for one bundle")
    if any(not 0 < entry.size <= MAX_MEMBER_BYTES for entry in ordered):
        raise UsageError(f"an artifact of more than {MAX_MEMBER_BYTES} bytes does not fit a bundle")
    records = [canonical_json(entry.record.model_dump(mode="json")) for entry in ordered]
    listing = Listing(
        format="scion-bundle",
        version=BUNDLE_VERSION,
        created=created,
        entries=tuple(
            Listed(
                digest=entry.record.digest,
                size=entry.size,
                record=str(digest_bytes(record)),
                record_size=len(record),
            )
            for entry, record in zip(ordered, records, strict=True)
        ),
    )
    front = canonical_json(listing.model_dump(mode="json"))
    write_member(stream, LISTING, len(front), (front,), digest_bytes(front))
    if signer is not None:
        envelope = sign(_statement(listing, digest_bytes(front)), signer).to_bytes()
        write_member(stream, SIGNATURE, len(envelope), (envelope,), digest_bytes(envelope))
    for entry, record, listed in zip(ordered, records, listing.entries, strict=True):
        digest = Digest.parse(listed.digest)
        write_member(stream, _record_name(digest), len(record), (record,), Digest.parse(listed.record))
        write_member(stream, _blob_name(digest), entry.size, entry.open_blob(), digest)
    write_end(stream)
    return listing


def read_bundle(
    stream: Readable,
    accept: Accept | None = None,
    *,
    limits: Limits | None = None,
    trusted: Mapping[str, PublicKey] | None = None,
    require_signature: bool = False,
) -> BundleContents:
    """Reads a bundle to its end, calling `accept` for each artifact in turn; without it, only checks.

    Of each artifact first the size, then the content digest, then the whole format with every tensor digest is
    checked, in memory; only then does `accept` see it. An error further on is raised after earlier artifacts were
    accepted, so `accept` must put them where they are not yet part of the library (quarantine).

    Raises `FormatError`, `DigestMismatch`, `StoreError` (a limit), `UntrustedError` (a wrong signature of a trusted
    key; with `require_signature` also a missing one or an unknown key, before any artifact is read).
    """
    limits = limits or Limits()
    reader = Reader(stream)
    following = reader.next()
    if following is None or following[0] != LISTING:
        raise FormatError("not a bundle: it does not begin with its listing")
    front = bytes(reader.body(following[1], limits.listing_bytes))
    listing, digest = _parse_listing(front, limits), digest_bytes(front)
    envelope: Envelope | None = None
    following = reader.next()
    if following is not None and following[0] == SIGNATURE:
        envelope = Envelope.parse(bytes(reader.body(following[1], 2 * limits.listing_bytes)))
        following = reader.next()
    signed_by = _signer(envelope, _statement(listing, digest), trusted or {}, require_signature)
    records: list[BundleRecord] = []
    for listed in listing.entries:
        expected = Digest.parse(listed.digest)
        _expect(following, _record_name(expected), listed.record_size)
        record = _parse_record(bytes(reader.body(listed.record_size, limits.record_bytes)), listed)
        _expect(reader.next(), _blob_name(expected), listed.size)
        blob = reader.body(listed.size, limits.blob_bytes)
        artifact = decode(blob, expected)  # compares the content digest before anything else
        if accept is not None:
            accept(record, artifact, memoryview(blob))
        records.append(record)
        following = reader.next()
    if following is not None:
        raise FormatError(f"member {following[0]!r} is not in the listing")
    claimed = envelope.key_id if envelope is not None else None
    return BundleContents(listing, digest, signed_by, claimed, tuple(records))


def _record_name(digest: Digest) -> str:
    return f"records/{digest.hex}.json"


def _blob_name(digest: Digest) -> str:
    return f"blobs/{digest.hex}"


def _expect(found: tuple[str, int] | None, name: str, size: int) -> None:
    if found != (name, size):
        raise FormatError(f"where {name} with {size} bytes is due, the bundle has {found or 'its end'}")


def _statement(listing: Listing, digest: Digest) -> Statement:
    """What a bundle's signature says: these artifacts, described by this listing (which fixes their records)."""
    subjects = [Subject(LISTING, digest)]
    subjects += [Subject(entry.digest, Digest.parse(entry.digest)) for entry in listing.entries]
    return Statement(tuple(subjects), PREDICATE_TYPE, {"created": listing.created, "version": listing.version})


def _signer(
    envelope: Envelope | None, statement: Statement, trusted: Mapping[str, PublicKey], required: bool
) -> str | None:
    """The id of the trusted key that signed this very bundle. A trusted key's wrong signature is never overlooked."""
    if envelope is None:
        if required:
            raise UntrustedError("the bundle is not signed")
        return None
    signed = envelope.key_id in trusted or required
    if signed:
        verify(envelope, trusted)
    if envelope.payload != statement.to_bytes():
        raise UntrustedError("the signature in the bundle belongs to another bundle")
    return envelope.key_id if signed else None


def _parse_listing(raw: bytes, limits: Limits) -> Listing:
    if raw.count(b"{") > limits.entries + 1:
        raise StoreError(f"a bundle of more than {limits.entries} artifacts is more than this import allows")
    value = strict_json(raw)
    version = value.get("version") if isinstance(value, dict) else None
    if type(version) is int and version > BUNDLE_VERSION:
        raise FormatError(f"bundle version {version} is newer than {BUNDLE_VERSION}")
    listing = _parse(Listing, raw)
    names = [entry.digest for entry in listing.entries]
    if names != sorted(set(names)):
        raise FormatError("the listing is not in order, or names an artifact twice")
    if sum(entry.size for entry in listing.entries) > limits.total_bytes:
        raise StoreError(f"the bundle holds more than the {limits.total_bytes} bytes that this import allows")
    if any(entry.size > limits.blob_bytes or entry.record_size > limits.record_bytes for entry in listing.entries):
        raise StoreError("an artifact or a record in the bundle is larger than this import allows")
    return listing


def _parse_record(raw: bytes, listed: Listed) -> BundleRecord:
    found = digest_bytes(raw)
    if str(found) != listed.record:
        raise DigestMismatch(f"the record of {listed.digest} is {found}, the listing says {listed.record}")
    record = _parse(BundleRecord, raw)
    if record.digest != listed.digest:
        raise FormatError(f"the record of {listed.digest} belongs to {record.digest}")
    return record


def _parse(kind: type[Model], raw: bytes) -> Model:
    """Canonical JSON of exactly this model's fields. Raises `FormatError`."""
    if raw.count(b"[") + raw.count(b"{") > MAX_BRACKETS:
        raise FormatError("a part of the bundle nests or lists too much")
    strict_json(raw)
    try:
        value = kind.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise FormatError(f"{kind.__name__} field {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    if canonical_json(value.model_dump(mode="json")) != raw:
        raise FormatError(f"{kind.__name__} is not in its canonical form")
    return value
