"""Ed25519 signatures over in-toto statements in DSSE envelopes: who says what about which artifacts.

Knows keys, statements and envelopes; not which keys are trusted (the caller hands them in) and not what a statement's
predicate means. A signature shows who spoke, never that a state came from its tokens: only the replay audit does.
Sources: DSSE 1.0.2 (secure-systems-lab/dsse, protocol.md), in-toto attestation Statement v1.
"""

from __future__ import annotations

import base64
import binascii
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from library.digest import Digest, canonical_json, digest_bytes
from library.errors import Conflict, FormatError, NotFound, UntrustedError, UsageError
from library.fsio import RealFileSystem, discard, translated
from library.manifest import strict_json

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"


@dataclass(frozen=True)
class PublicKey:
    """An Ed25519 public key: its 32 raw bytes. `text` is what tables and people exchange."""

    raw: bytes

    def __post_init__(self) -> None:
        if len(self.raw) != 32:
            raise FormatError(f"an Ed25519 public key has 32 bytes, not {len(self.raw)}")

    @property
    def id(self) -> str:
        """The key's name: the digest of its raw bytes."""
        return str(digest_bytes(self.raw))

    @property
    def text(self) -> str:
        return f"ed25519:{self.raw.hex()}"

    @classmethod
    def parse(cls, text: str) -> PublicKey:
        """The key written as `ed25519:<64 lower-case hex>`. Raises `FormatError`."""
        head, _, digits = text.partition(":")
        if head != "ed25519" or len(digits) != 64 or not set(digits) <= set("0123456789abcdef"):
            raise FormatError(f"not a public key of the form ed25519:<64 hex>: {text[:80]!r}")
        return cls(bytes.fromhex(digits))


@dataclass(frozen=True)
class SigningKey:
    """A private key; its text form never shows it."""

    public: PublicKey
    private: Ed25519PrivateKey = field(repr=False)

    @property
    def id(self) -> str:
        return self.public.id


@dataclass(frozen=True)
class Subject:
    name: str
    digest: Digest


@dataclass(frozen=True)
class Statement:
    """`predicate` (JSON without floats) is said of all `subjects`."""

    subjects: tuple[Subject, ...]
    predicate_type: str
    predicate: Mapping[str, Any]

    def to_bytes(self) -> bytes:
        return canonical_json(
            {
                "_type": STATEMENT_TYPE,
                "subject": [{"name": item.name, "digest": {"blake3": item.digest.hex}} for item in self.subjects],
                "predicateType": self.predicate_type,
                "predicate": dict(self.predicate),
            }
        )

    @classmethod
    def parse(cls, raw: bytes) -> Statement:
        """Strict: canonical JSON with exactly these fields. Raises `FormatError`."""
        match strict_json(raw):
            case {
                "_type": "https://in-toto.io/Statement/v1",
                "subject": list(subjects),
                "predicateType": str(kind),
                "predicate": dict(predicate),
            }:
                found = cls(tuple(_subject(item) for item in subjects), kind, predicate)
            case _:
                raise FormatError("not an in-toto statement of version 1")
        if found.to_bytes() != raw:
            raise FormatError("the statement has fields that nobody here understands")
        return found


@dataclass(frozen=True)
class Envelope:
    """A DSSE envelope with one signature. Holding one proves nothing: see `verify`."""

    payload: bytes
    key_id: str
    signature: bytes

    def to_bytes(self) -> bytes:
        return canonical_json(
            {
                "payloadType": PAYLOAD_TYPE,
                "payload": base64.b64encode(self.payload).decode("ascii"),
                "signatures": [{"keyid": self.key_id, "sig": base64.b64encode(self.signature).decode("ascii")}],
            }
        )

    @classmethod
    def parse(cls, raw: bytes) -> Envelope:
        """Strict: canonical JSON, one signature, the one payload type. Raises `FormatError`."""
        match strict_json(raw):
            case {
                "payloadType": "application/vnd.in-toto+json",
                "payload": str(payload),
                "signatures": [{"keyid": str(key_id), "sig": str(signature)}],
            }:
                found = cls(_base64(payload), key_id, _base64(signature))
            case _:
                raise FormatError("not a DSSE envelope with one signature over an in-toto statement")
        if found.to_bytes() != raw:
            raise FormatError("the envelope has fields that nobody here understands")
        return found


def generate_key(path: Path) -> SigningKey:
    """A new key, its private half written durably to `path` (PEM, PKCS #8, mode 0600).

    Raises `Conflict` if there is a file of that name already: a key is never overwritten.
    """
    private = Ed25519PrivateKey.generate()
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    files, name = RealFileSystem(path.parent), path.name
    with translated(f"writing the key {path}"):
        try:
            handle = files.create(name)  # straight under its name, since a rename would replace another key
        except FileExistsError:
            raise Conflict(f"there is a file already at {path}; give another name, or move it away") from None
        try:
            try:
                files.write(handle, pem)
                files.fsync(handle)
            finally:
                files.close(handle)
            files.fsync_dir("")
        except BaseException:
            discard(files, name)
            raise
    return SigningKey(_public(private), private)


def load_key(path: Path) -> SigningKey:
    """The key in a file that `generate_key` wrote. Raises `NotFound`, `UsageError` (mode), `FormatError`."""
    with translated(f"reading the key {path}"):
        try:
            mode = path.stat().st_mode
            pem = bytes(RealFileSystem(path.parent).read(path.name))
        except FileNotFoundError:
            raise NotFound(f"there is no key at {path}; make one with `library keys`") from None
    if stat.S_IMODE(mode) & 0o077:
        raise UsageError(f"others can read the private key {path}; run chmod 600 on it, or make a new one")
    try:
        private = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise FormatError(f"{path} holds no private key in PEM form") from error
    if not isinstance(private, Ed25519PrivateKey):
        raise FormatError(f"{path} holds a key of another kind; Ed25519 is the only one in use")
    return SigningKey(_public(private), private)


def sign(statement: Statement, key: SigningKey) -> Envelope:
    """The envelope in which `key` says `statement`. Deterministic."""
    payload = statement.to_bytes()
    return Envelope(payload, key.id, key.private.sign(pae(PAYLOAD_TYPE, payload)))


def verify(envelope: Envelope, trusted: Mapping[str, PublicKey]) -> Statement:
    """The statement, if one of the `trusted` keys (by id) signed it; nothing in it is parsed before that.

    Raises `UntrustedError` for an unknown key and for a wrong signature, `FormatError` for a signed non-statement.
    """
    public = trusted.get(envelope.key_id)
    if public is None or public.id != envelope.key_id:
        raise UntrustedError(f"signed by {envelope.key_id[:80]!r}, which is not a key that you trust")
    try:
        verifier = Ed25519PublicKey.from_public_bytes(public.raw)
        verifier.verify(envelope.signature, pae(PAYLOAD_TYPE, envelope.payload))
    except (InvalidSignature, ValueError) as error:
        raise UntrustedError(f"the signature is not that of {envelope.key_id}") from error
    return Statement.parse(envelope.payload)


def pae(kind: str, payload: bytes) -> bytes:
    """DSSE's pre-authentication encoding: what is signed, so that the type cannot be exchanged."""
    name = kind.encode("utf-8")
    return b"DSSEv1 %d %b %d %b" % (len(name), name, len(payload), payload)


def _public(private: Ed25519PrivateKey) -> PublicKey:
    return PublicKey(private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))


def _subject(item: Any) -> Subject:
    match item:
        case {"name": str(name), "digest": {"blake3": str(digits)}}:
            return Subject(name, Digest(digits))
        case _:
            raise FormatError("a subject has no name or no BLAKE3 digest")


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise FormatError("not base64") from error
