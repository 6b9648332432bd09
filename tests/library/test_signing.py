"""Keys, statements and envelopes: only the trusted key's own words pass."""

from __future__ import annotations

import base64
import json
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from library.digest import canonical_json, digest_bytes
from library.errors import Conflict, FormatError, NotFound, UntrustedError, UsageError
from library.signing import (
    PAYLOAD_TYPE,
    Envelope,
    PublicKey,
    SigningKey,
    Statement,
    Subject,
    generate_key,
    load_key,
    pae,
    sign,
    verify,
)

STATEMENT = Statement((Subject("a", digest_bytes(b"a")), Subject("b", digest_bytes(b"b"))), "urn:test:v1", {"n": [1]})


@pytest.fixture
def key(tmp_path: Path) -> SigningKey:
    return generate_key(tmp_path / "key.pem")


def test_a_key_is_written_for_its_owner_only_and_read_again(tmp_path: Path, key: SigningKey) -> None:
    path = tmp_path / "key.pem"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes().startswith(b"-----BEGIN PRIVATE KEY-----")
    assert load_key(path).public == key.public
    assert [item.name for item in tmp_path.iterdir()] == ["key.pem"]
    assert "private" not in repr(key)


def test_a_key_is_never_overwritten(tmp_path: Path, key: SigningKey) -> None:
    before = (tmp_path / "key.pem").read_bytes()
    with pytest.raises(Conflict):
        generate_key(tmp_path / "key.pem")
    assert (tmp_path / "key.pem").read_bytes() == before


def test_a_key_file_that_will_not_do(tmp_path: Path, key: SigningKey) -> None:
    with pytest.raises(NotFound):
        load_key(tmp_path / "none.pem")
    rsa = generate_private_key(65537, 2048).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    for content in (b"", b"nonsense", rsa):
        path = tmp_path / "other.pem"
        path.write_bytes(content)
        path.chmod(0o600)
        with pytest.raises(FormatError):
            load_key(path)
    (tmp_path / "key.pem").chmod(0o640)
    with pytest.raises(UsageError, match="chmod 600"):
        load_key(tmp_path / "key.pem")


def test_sign_and_verify(key: SigningKey) -> None:
    envelope = Envelope.parse(sign(STATEMENT, key).to_bytes())
    assert verify(envelope, {key.id: key.public}) == STATEMENT
    assert sign(STATEMENT, key) == envelope


def test_the_signature_is_the_one_of_the_dsse_specification(key: SigningKey) -> None:
    """The example of the specification's encoding, and a check with nothing but the cryptography package."""
    assert pae("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )
    value = json.loads(sign(STATEMENT, key).to_bytes())
    payload = base64.b64decode(value["payload"])
    signature = base64.b64decode(value["signatures"][0]["sig"])
    key.private.public_key().verify(signature, b"DSSEv1 28 " + PAYLOAD_TYPE.encode() + b" %d " % len(payload) + payload)
    assert json.loads(payload)["subject"][0] == {"name": "a", "digest": {"blake3": digest_bytes(b"a").hex}}


def test_other_keys_payloads_and_signatures_are_refused(tmp_path: Path, key: SigningKey) -> None:
    other = generate_key(tmp_path / "other.pem")
    envelope, trusted = sign(STATEMENT, key), {key.id: key.public}
    forged = replace(STATEMENT, predicate={"n": [2]})
    refused = {
        "unknown key": sign(STATEMENT, other),
        "other key under a trusted name": replace(sign(STATEMENT, other), key_id=key.id),
        "other payload": replace(envelope, payload=forged.to_bytes()),
        "no signature": replace(envelope, signature=b""),
        "signature of the bare payload": replace(envelope, signature=key.private.sign(envelope.payload)),
        "signature of another type": replace(envelope, signature=key.private.sign(pae("text/plain", envelope.payload))),
    }
    for item in refused.values():
        with pytest.raises(UntrustedError):
            verify(item, trusted)
    with pytest.raises(UntrustedError):
        verify(envelope, {})
    with pytest.raises(UntrustedError):
        verify(envelope, {key.id: other.public})
    with pytest.raises(UntrustedError, match="not a key that you trust"):
        verify(refused["other key under a trusted name"], {key.id: other.public})  # the caller mixed up its keys


def test_every_flipped_byte_of_an_envelope_is_refused(key: SigningKey) -> None:
    raw, trusted = bytearray(sign(STATEMENT, key).to_bytes()), {key.id: key.public}
    for position in range(len(raw)):
        for bit in (1, 4, 0x20):
            raw[position] ^= bit
            with pytest.raises((FormatError, UntrustedError)):
                verify(Envelope.parse(bytes(raw)), trusted)
            raw[position] ^= bit
    assert verify(Envelope.parse(bytes(raw)), trusted) == STATEMENT


def change(value: dict[str, Any], **changes: Any) -> bytes:
    return canonical_json({**value, **changes})


def test_envelopes_and_statements_are_strict(key: SigningKey) -> None:
    value = json.loads(sign(STATEMENT, key).to_bytes())
    signature = value["signatures"][0]
    for raw in (
        b"",
        b"[]",
        json.dumps(value).encode(),
        change(value, payloadType="text/plain"),
        change(value, signatures=[]),
        change(value, signatures=[signature, signature]),
        change(value, signatures=[{**signature, "cert": ""}]),
        change(value, payload=value["payload"] + "\n"),
        change(value, payload="!"),
        change(value, extra=1),
    ):
        with pytest.raises(FormatError):
            Envelope.parse(raw)
    plain = json.loads(STATEMENT.to_bytes())
    for raw in (
        change(plain, _type="https://in-toto.io/Statement/v0.1"),
        change(plain, extra=1),
        change(plain, subject=[{"name": "a", "digest": {"sha256": "0" * 64}}]),
        change(plain, subject=[{"name": "a", "digest": {"blake3": "A" * 64}}]),
        change(plain, subject=[{"name": "a", "digest": {"blake3": "0" * 64, "sha1": ""}}]),
    ):
        with pytest.raises(FormatError):
            Statement.parse(raw)


def test_public_keys_as_text(key: SigningKey) -> None:
    assert PublicKey.parse(key.public.text) == key.public
    assert key.id == str(digest_bytes(key.public.raw))
    for text in ("", "ed25519:", "ed25519:" + "A" * 64, "rsa:" + "a" * 64, key.public.text + "\n"):
        with pytest.raises(FormatError):
            PublicKey.parse(text)
    with pytest.raises(FormatError):
        PublicKey(b"short")
    assert isinstance(key.private, Ed25519PrivateKey)
