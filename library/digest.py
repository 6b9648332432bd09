"""BLAKE3 digests that carry their algorithm. Knows bytes and canonical JSON, nothing else."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from queue import SimpleQueue
from types import TracebackType
from typing import Any

from blake3 import blake3

from library.errors import FormatError

_TEXT = re.compile(r"blake3:([0-9a-f]{64})", re.ASCII)
_PLAIN = frozenset({int, str, bool, type(None)})
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


class Following:
    """Digest of a buffer that is being filled: a second thread hashes each piece while the next one is read.

    Call it with the pieces in order; they must not change afterwards. A single piece is hashed without a thread.
    A context manager, which ends the thread.
    """

    def __init__(self) -> None:
        self._hasher = blake3(max_threads=blake3.AUTO)
        self._pieces: SimpleQueue[memoryview | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def __call__(self, piece: memoryview) -> None:
        if self._thread is None and not self._pieces.empty():
            self._thread = threading.Thread(target=self._follow, name="hashing", daemon=True)
            self._thread.start()
        self._pieces.put(piece)

    def digest(self) -> Digest:
        """The digest of all pieces; waits for the thread. No more pieces after this."""
        self._end()
        while not self._pieces.empty():
            self._hasher.update(self._pieces.get() or b"")
        return Digest(self._hasher.hexdigest())

    def __enter__(self) -> Following:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end()

    def _follow(self) -> None:
        while (piece := self._pieces.get()) is not None:
            self._hasher.update(piece)

    def _end(self) -> None:
        if self._thread is not None:
            self._pieces.put(None)
            self._thread.join()
            self._thread = None


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
    elif isinstance(value, list | tuple) and not _PLAIN.issuperset(map(type, value)):  # token ids come by the thousand
        for item in value:
            _refuse_floats(item)
