"""Packing the blobs of artifacts that are seldom used, and unpacking them: the bytes that come out are the same.

The new file is durable before the record says so, and the record says so before the old file goes. Knows when a
blob may be packed, not how (compression.py).
"""

from __future__ import annotations

from contextlib import suppress

from sqlmodel import col, func, select

from library.artifacts import Artifacts
from library.blobs import blob_path, packed_path
from library.errors import Conflict, CorruptError
from library.problems import found
from library.search import parse
from library.tables import Artifact

PACKING = "planes-zstd"
PACKABLE = ("published", "held", "imported")


class Cold(Artifacts):
    def pack(self, digest: str, *, actor: str | None = None) -> Artifact:
        """Keeps an artifact's blob compressed. Unchanged if it is packed already or would not get smaller.

        `Conflict` if the artifact has no bytes in use; `DigestMismatch`, `MissingBlob` as for reading.
        """
        row = self._with_bytes(digest)
        if row.compression != "none":
            return row
        data = self.read_blob(row.digest)
        with self._locked(exclusive=True):
            size = self.blobs.pack(parse(row.digest), data)
            return row if size is None else self._repacked(row.digest, PACKING, size, actor)

    def unpack(self, digest: str, *, actor: str | None = None) -> Artifact:
        """Keeps an artifact's blob as its raw bytes again. Unchanged if it is."""
        row = self._with_bytes(digest)
        if row.compression == "none":
            return row
        data = self.read_blob(row.digest)
        with self._locked(exclusive=True):
            size = self.blobs.put(parse(row.digest), [data])
            return self._repacked(row.digest, "none", size, actor)

    def pack_cold(self, before: str, limit: int = 100, *, actor: str | None = None) -> list[str]:
        """Packs up to `limit` unpinned artifacts that were not used since `before` (RFC 3339), oldest first."""
        return [digest for digest in self._coldest(before, limit) if self._packs(digest, actor)]

    def pack_to(self, quota_bytes: int, *, actor: str | None = None) -> list[str]:
        """Packs unpinned artifacts, those least recently used first, until all states take at most `quota_bytes` on
        disk or none is left to pack. Nothing is dropped."""
        packed: list[str] = []
        for digest in self._coldest("9999", None):
            if self.used_bytes() <= quota_bytes:
                break
            packed += [digest] if self._packs(digest, actor) else []
        return packed

    def _coldest(self, before: str, limit: int | None) -> list[str]:
        last = func.coalesce(Artifact.last_used, Artifact.created)
        query = select(Artifact.digest).where(Artifact.state == "published", Artifact.compression == "none")
        query = query.where(col(Artifact.pinned).is_(False), last < before).order_by(last, col(Artifact.digest))
        with self._read() as session:
            return list(session.exec(query if limit is None else query.limit(limit)))

    def _packs(self, digest: str, actor: str | None) -> bool:
        """Whether it is packed now; one that was taken out of use, or is damaged, holds up no other."""
        with suppress(Conflict, CorruptError):
            return self.pack(digest, actor=actor).compression != "none"
        return False

    def _with_bytes(self, digest: str) -> Artifact:
        row = self.artifact(digest)
        if row.state not in PACKABLE:
            raise Conflict(f"artifact {row.digest} is {row.state}; only one in use is packed or unpacked")
        return row

    def _repacked(self, digest: str, compression: str, size: int, actor: str | None) -> Artifact:
        """The caller holds the lock exclusively and has written the new file."""
        with self._write(actor) as change:
            row = found(change.session.get(Artifact, digest), "artifact", digest)
            if row.state not in PACKABLE:
                raise Conflict(f"artifact {digest} became {row.state} meanwhile")
            row.compression, row.stored_bytes = compression, size
            change.session.add(row)
            change.log("artifact.pack" if compression != "none" else "artifact.unpack", digest, stored=size)
        old = blob_path(parse(digest)) if compression != "none" else packed_path(parse(digest))
        self.blobs.remove_path(old)
        return row
