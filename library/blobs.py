"""Content-addressed files: `blobs/ab/cdef…`, `staging/…` and `quarantine/…`. A path comes only from a `Digest`.

A cold blob is kept packed, as `blobs/ab/cdef….z` (compression.py): its name is still the digest of its raw bytes.

Knows bytes, digests and the order of durable steps. Knows nothing of rows: who may read or remove a blob is
decided in store.py. Callers hold the library's lock where a file must not vanish between two calls.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from blake3 import blake3

from library.digest import Digest, Following, digest_bytes
from library.errors import CorruptError, DigestMismatch, FormatError, MissingBlob
from library.fsio import Buffer, FileSystem, Watch, translated, write_durably

BLOBS, STAGING, QUARANTINE = "blobs", "staging", "quarantine"
TEMPORARY = ".tmp-"
PACKED = ".z"


@dataclass(frozen=True)
class Stray:
    """A file found on disk: its path, size in bytes, age in seconds, and its digest if the name is one.

    `packed`: a compressed blob.
    """

    path: str
    size: int
    age: float
    kind: str
    digest: Digest | None
    packed: bool = False


def blob_path(digest: Digest) -> str:
    return f"{BLOBS}/{digest.hex[:2]}/{digest.hex[2:]}"


def packed_path(digest: Digest) -> str:
    return blob_path(digest) + PACKED


def staged_path(digest: Digest) -> str:
    return f"{STAGING}/{digest.hex}"


class BlobStore:
    """Durable files by digest below one `FileSystem`. Raises the project's errors only."""

    def __init__(self, fs: FileSystem) -> None:
        self.fs = fs

    def prepare(self) -> None:
        """The folders of a library; idempotent."""
        with translated("making the library's folders"):
            for folder in (BLOBS, STAGING, QUARANTINE, "backups", "keys", "live"):
                self.fs.mkdir(folder)

    # published

    def put(self, digest: Digest, chunks: Iterable[Buffer]) -> int:
        """Writes a blob durably and returns its size. One that is there already is verified first: a damaged one
        goes to quarantine and is written anew. `DigestMismatch` if `chunks` are not what `digest` says."""
        with translated(f"writing blob {digest}"):
            self.fs.mkdir(f"{BLOBS}/{digest.hex[:2]}")
            return self._put(blob_path(digest), digest, chunks)

    def pack(self, digest: Digest, data: Buffer) -> int | None:
        """Writes the compressed form of `data` beside its blob, durably, and returns its size; None, and nothing
        written, if it would not be smaller. What is there under that name already is replaced."""
        from library.compression import compress, decompress  # numpy and zstandard: only for whoever packs

        packed = compress(data)
        if len(packed) >= len(data):
            return None
        decompress(packed, len(data), digest)  # what cannot be read back must not replace anything
        path = packed_path(digest)
        with translated(f"writing packed blob {digest}"):
            write_durably(self.fs, f"{path.rpartition('/')[0]}/{TEMPORARY}{secrets.token_hex(8)}", path, [packed])
        return len(packed)

    def get(self, digest: Digest, size: int | None = None) -> memoryview:
        """The blob's bytes, read once and verified in memory. With `size`, that of the raw bytes, a packed blob
        will do. `MissingBlob`, `DigestMismatch`."""
        try:
            return self._get(blob_path(digest), digest, "blob")
        except MissingBlob:
            with translated(f"looking for blob {digest}"):
                if size is None or self.fs.stat(packed_path(digest)) is None:
                    raise
        return self.unpack(digest, size)

    def unpack(self, digest: Digest, size: int) -> memoryview:
        """The raw bytes of a packed blob, verified. `MissingBlob`, `DigestMismatch`."""
        from library.compression import decompress

        packed = self._read(packed_path(digest), digest, "packed blob")
        try:
            return memoryview(decompress(packed, size, digest))
        except FormatError as error:
            raise DigestMismatch(f"packed blob {digest} cannot be unpacked: {error}") from error

    def has(self, digest: Digest) -> bool:
        return self.size(digest) is not None

    def size(self, digest: Digest) -> int | None:
        """Bytes on disk, raw or packed, or None if there is no regular file of either name."""
        with translated(f"looking for blob {digest}"):
            for path in (blob_path(digest), packed_path(digest)):
                found = self.fs.stat(path)
                if found is not None and found.kind == "file":
                    return found.size
        return None

    def remove(self, digest: Digest) -> int:
        """Deletes a blob that no row refers to any more; returns the bytes freed (0 if it was gone)."""
        return self._remove(blob_path(digest)) + self._remove(packed_path(digest))

    # staged

    def stage(self, digest: Digest, chunks: Iterable[Buffer]) -> int:
        with translated(f"staging state {digest}"):
            return self._put(staged_path(digest), digest, chunks)

    def has_staged(self, digest: Digest) -> bool:
        with translated(f"looking for staged state {digest}"):
            found = self.fs.stat(staged_path(digest))
        return found is not None and found.kind == "file"

    def get_staged(self, digest: Digest) -> memoryview:
        return self._get(staged_path(digest), digest, "staged state")

    def unstage(self, digest: Digest) -> int:
        return self._remove(staged_path(digest))

    # anything

    def set_aside(self, path: str) -> str | None:
        """Moves whatever stands at `path` into quarantine; returns its new path, None if nothing was there."""
        name = path.removeprefix(f"{BLOBS}/").replace("/", "")
        target = f"{QUARANTINE}/{name[:80]}.{secrets.token_hex(4)}"
        with translated(f"moving {path} to quarantine"):
            if self.fs.stat(path) is None:
                return None
            self.fs.rename(path, target)
            self.fs.fsync_dir(QUARANTINE)
            self.fs.fsync_dir(path.rpartition("/")[0])
        return target

    def walk(self) -> Iterator[Stray]:
        """Everything below blobs/ and staging/, whatever it is, in order of path."""
        with translated("listing the library's files"):
            for shard in self.fs.listdir(BLOBS):
                base = f"{BLOBS}/{shard}"
                found = self.fs.stat(base)
                if found is not None and found.kind != "folder":
                    yield self._stray(base, None)
                    continue
                for name in self.fs.listdir(base):
                    digest = _digest_or_none(shard + name.removesuffix(PACKED)) if len(shard) == 2 else None
                    yield self._stray(f"{base}/{name}", digest)
            for name in self.fs.listdir(STAGING):
                yield self._stray(f"{STAGING}/{name}", _digest_or_none(name))

    def remove_path(self, path: str) -> int:
        """Deletes a file that `walk` found; returns the bytes freed."""
        return self._remove(path)

    def loose_bytes(self) -> int:
        """Bytes in staging and quarantine, which count towards a quota too."""
        total = 0
        with translated("measuring staging and quarantine"):
            for folder in (STAGING, QUARANTINE):
                for name in self.fs.listdir(folder):
                    found = self.fs.stat(f"{folder}/{name}")
                    total += found.size if found is not None else 0
        return total

    def _stray(self, path: str, digest: Digest | None) -> Stray:
        found = self.fs.stat(path)
        if found is None:
            return Stray(path, 0, 0.0, "gone", digest)
        age = max(0.0, time.time() - found.modified)
        return Stray(path, found.size, age, found.kind, digest, path.endswith(PACKED))

    def _put(self, path: str, digest: Digest, chunks: Iterable[Buffer]) -> int:
        folder = path.rpartition("/")[0]
        found = self.fs.stat(path)
        if found is not None:
            if found.kind == "file" and digest_bytes(self.fs.read(path)) == digest:
                self.fs.fsync_dir(folder)  # a deposit that stopped after its rename left the name unsynced
                return found.size
            self.set_aside(path)
        checked = _Checked(digest, chunks)
        write_durably(self.fs, f"{folder}/{TEMPORARY}{secrets.token_hex(8)}", path, checked)
        return checked.size

    def _get(self, path: str, digest: Digest, what: str) -> memoryview:
        """Reads and hashes at once: each piece is hashed in the memory that is returned, while the next is read."""
        with Following() as hashing:
            data = self._read(path, digest, what, hashing)
            actual = hashing.digest()
        if actual != digest:
            raise DigestMismatch(f"{what} {digest} holds other bytes (their digest is {actual})")
        return data

    def _read(self, path: str, digest: Digest, what: str, watch: Watch | None = None) -> memoryview:
        try:
            with translated(f"reading {what} {digest}"):
                try:
                    return self.fs.read(path, watch)
                except FileNotFoundError:
                    raise MissingBlob(
                        f"{what} {digest} is missing from the library; restore it from a bundle or a backup, "
                        "or rebuild it by replay"
                    ) from None
        except MissingBlob:
            raise
        except CorruptError as error:
            raise DigestMismatch(str(error)) from error

    def _remove(self, path: str) -> int:
        with translated(f"removing {path}"):
            found = self.fs.stat(path)
            if found is None:
                return 0
            try:
                self.fs.unlink(path)
            except FileNotFoundError:
                return 0
            self.fs.fsync_dir(path.rpartition("/")[0])
            return found.size


class _Checked:
    """Passes chunks on and raises `DigestMismatch` at their end if they are not what was promised."""

    def __init__(self, digest: Digest, chunks: Iterable[Buffer]) -> None:
        self._digest, self._chunks, self.size = digest, chunks, 0

    def __iter__(self) -> Iterator[Buffer]:
        hasher = blake3(max_threads=blake3.AUTO)
        for chunk in self._chunks:
            view = memoryview(chunk).cast("B")
            hasher.update(view)
            self.size += view.nbytes
            yield view
        if hasher.hexdigest() != self._digest.hex:
            raise DigestMismatch(f"the bytes to be stored are not those of {self._digest}")


def _digest_or_none(name: str) -> Digest | None:
    try:
        return Digest(name)
    except FormatError:
        return None
