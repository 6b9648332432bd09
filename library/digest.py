"""BLAKE3 digests that carry their algorithm. Knows bytes and canonical JSON, nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from blake3 import blake3

from library.errors import FormatError

_TEXT = re.compile(r"blake3:([0-9a-f]{64})", re.ASCII)
_THREADED_FROM = 1 << 20  # below this a second thread costs more than it saves


@dataclass(frozen=True, order=True)
class Digest:
    """A full-length BLAKE3 digest; `str()` gives `blake3:<64 lower-case hex>`."""

    hex: str

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[0-9a-f]{64}", self.hex, re.ASCII):
            raise FormatError(f"not a BLAKE3 digest: {self.hex[:80]!r}")

    def __str__(self) -> str:
        return f"blake3:{self.hex}"

    @classmethod
    def parse(cls, text: str) -> Digest:
        """The digest written as `blake3:<64 hex>`; anything else raises `FormatError` before any file is touched."""
        match = _TEXT.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise FormatError(f"not a digest of the form blake3:<64 hex>: {str(text)[:80]!r}")
        return cls(match.group(1))


def digest_bytes(data: bytes | bytearray | memoryview) -> Digest:
    """Digest of one buffer, several threads for large ones. Does not copy."""
    view = memoryview(data).cast("B")
    threads = blake3.AUTO if view.nbytes >= _THREADED_FROM else 1
    return Digest(blake3(view, max_threads=threads).hexdigest())


def digest_chunks(chunks: Iterable[bytes | bytearray | memoryview]) -> Digest:
    """Digest of a stream of buffers, equal to `digest_bytes` of their concatenation."""
    hasher = blake3(max_threads=blake3.AUTO)
    for chunk in chunks:
        hasher.update(memoryview(chunk).cast("B"))
    return Digest(hasher.hexdigest())


def canonical_json(value: Any) -> bytes:
    """The one encoding of a JSON value: sorted keys, no spaces, UTF-8, no floats.

    Floats have no canonical text that every language agrees on, so they are refused: store an integer in a
    smaller unit or a decimal string. Raises `FormatError`.
    """
    _refuse_floats(value)
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        return text.encode("utf-8")
    except (TypeError, ValueError, UnicodeEncodeError) as error:
        raise FormatError(f"value has no canonical JSON: {error}") from error


def digest_json(value: Any) -> Digest:
    """Digest of `canonical_json(value)`."""
    return digest_bytes(canonical_json(value))


def _refuse_floats(value: Any) -> None:
    if isinstance(value, float):
        raise FormatError(f"a float has no canonical JSON: {value!r}")
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise FormatError(f"a JSON key must be text: {key!r}")
            _refuse_floats(item)
    elif isinstance(value, list | tuple):
        for item in value:
            _refuse_floats(item)
