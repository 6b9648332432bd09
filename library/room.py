"""Room on disk: the quota on real bytes, eviction of states that were not used for long, and what is kept of them.

An evicted artifact keeps its record, its answer and its manifest: with the manifest, and only with it, the state can
be rebuilt by replay (core/rebuilding.py). Knows bytes and rows, not how a state is rebuilt.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlmodel import col, func, select

from library.artifact import decode_verified
from library.audit import now
from library.blobs import packed_path
from library.database import Change, new_id
from library.digest import Digest
from library.errors import Conflict, CorruptError, StorageFull
from library.manifest import Manifest, encode_manifest, parse_manifest
from library.problems import found
from library.reviews import Encodable, Reviews
from library.search import parse
from library.tables import Artifact, Measurement

WITH_BYTES = ("published", "held", "imported", "revoked")  # rows whose blob should be on disk (revoked: until gc)
KEPT_MANIFEST = "manifest"
KEPT_MANIFESTS = (KEPT_MANIFEST, "segment-manifest")  # books keep theirs at deposit (core/books/deposit.py)


class Room(Reviews):
    quota_bytes: int | None = None

    def used_bytes(self) -> int:
        """Bytes that the library's states take on disk: blobs, staged and quarantined files."""
        with self._read() as session:
            query = select(func.coalesce(func.sum(Artifact.stored_bytes), 0))
            stored = session.exec(query.where(col(Artifact.state).in_(WITH_BYTES))).one()
        return int(stored) + self.blobs.loose_bytes()

    def stage(self, encoded: Encodable) -> str:
        """As without a quota; with one, staged states count too. `StorageFull` before anything is written."""
        if self.quota_bytes is None:
            return super().stage(encoded)
        with self._locked(exclusive=True):
            if not self.blobs.has_staged(encoded.digest):
                self._evict(encoded.size, self.quota_bytes, keep=None, actor=None)
            self.blobs.stage(encoded.digest, encoded.parts())
        return str(encoded.digest)

    def evict(self, *, bytes_needed: int = 0, quota_bytes: int | None = None, actor: str | None = None) -> list[str]:
        """Drops the bytes of the least recently used unpinned artifacts until `bytes_needed` more fit the quota.

        Their records, answers and manifests stay; replay can rebuild them. Returns their digests. `StorageFull` if
        even without them it would not fit; then nothing is dropped.
        """
        quota = self.quota_bytes if quota_bytes is None else quota_bytes
        if quota is None:
            return []
        with self._locked(exclusive=True):
            return self._evict(bytes_needed, quota, keep=None, actor=actor)

    def drop(self, digests: Sequence[str], *, actor: str | None = None) -> list[str]:
        """Drops the bytes of these artifacts, all or none; evicted ones are left out. `Conflict` if one is pinned or
        not published."""
        with self._locked(exclusive=True):
            with self._read() as session:
                rows = [found(session.get(Artifact, str(parse(name))), "artifact", name) for name in digests]
            chosen = [row for row in rows if row.state != "evicted"]
            for row in chosen:
                if row.pinned or row.state != "published":
                    raise Conflict(
                        f"artifact {row.digest} is {'pinned' if row.pinned else row.state}: it keeps its bytes"
                    )
            return self._drop(chosen, "dropped on request", actor)

    def kept_manifest(self, digest: str) -> Manifest | None:
        """The manifest of an artifact that was evicted, to rebuild its state with. None if none was kept."""
        with self._read() as session:
            query = select(Measurement.detail).where(Measurement.artifact == digest)
            text = session.exec(query.where(col(Measurement.kind).in_(KEPT_MANIFESTS)).limit(1)).first()
        return None if text is None else parse_manifest(text.encode())

    def put_back(self, encoded: Encodable, *, actor: str | None = None) -> Artifact:
        """Gives a known artifact its bytes again: rebuilt, or out of a bundle. An evicted one is published again.

        The digest says that they are the very bytes. `Conflict` for one that is out of use; `StorageFull`.
        """
        digest = str(encoded.digest)
        with self._locked(exclusive=True):
            with self._read() as session:
                state = found(session.get(Artifact, digest), "artifact", digest).state
            if state not in ("published", "held", "imported", "evicted"):
                raise Conflict(f"artifact {digest} is {state}: it does not come back")
            self._make_room(encoded.size, keep=digest)
            size = self.blobs.put(encoded.digest, encoded.parts())
            with self._write(actor) as change:
                row = found(change.session.get(Artifact, digest), "artifact", digest)
                if row.state == "revoked":
                    raise Conflict(f"artifact {digest} was revoked meanwhile")
                row.stored_bytes, row.compression = size, "none"
                row.last_used = now()  # else it would be the first to go again
                change.session.add(row)
                change.log("artifact.put_back", digest, size=size)
                if row.state == "evicted":
                    self._set_state(change, row, "published", "its bytes are back")
            self.blobs.remove_path(packed_path(encoded.digest))
        return row

    # parts of a larger step; the caller holds the lock exclusively

    def _make_room(self, size: int, keep: str) -> None:
        if self.quota_bytes is not None and not self.blobs.has(parse(keep)):
            self._evict(size, self.quota_bytes, keep=keep, actor=None)

    def _evict(self, size: int, quota: int, keep: str | None, actor: str | None) -> list[str]:
        excess = self.used_bytes() + size - quota
        if excess > 0 and self._let_go_of_spare():
            excess = self.used_bytes() + size - quota
        if excess <= 0:
            return []
        with self._read() as session:
            query = select(Artifact).where(Artifact.state == "published", col(Artifact.pinned).is_(False))
            oldest_first = func.coalesce(Artifact.last_used, Artifact.created)
            rows = list(session.exec(query.order_by(oldest_first, col(Artifact.digest))))
        chosen: list[Artifact] = []
        for row in rows:
            if excess <= 0:
                break
            if row.digest != keep:
                chosen.append(row)
                excess -= row.stored_bytes
        if excess > 0:
            raise StorageFull(
                f"the quota of {quota} bytes is {excess} bytes too small even without every unpinned state; "
                "raise it, unpin artifacts, collect garbage, or discard staged states"
            )
        return self._drop(chosen, "made room for others", actor)

    def _let_go_of_spare(self) -> bool:
        """Drops what only saves time; whether anything was."""
        return False

    def _drop(self, rows: Sequence[Artifact], reason: str, actor: str | None) -> list[str]:
        """Keeps the manifests, then lets the records go of the bytes, then the bytes go."""
        manifests = {row.digest: self._manifest_to_keep(row) for row in rows}
        with self._write(actor) as change:
            for chosen in rows:
                row = found(change.session.get(Artifact, chosen.digest), "artifact", chosen.digest)
                if row.state != "published" or row.pinned:  # revoked or pinned by another process just now
                    continue
                if (text := manifests[row.digest]) is not None:
                    change.session.add(_kept(row, text))
                self._set_state(change, row, "evicted", reason)
        with self._read() as session:
            gone = [row.digest for row in rows if found(session.get(Artifact, row.digest), "", "").state == "evicted"]
        for digest in gone:  # only now that no record refers to them
            self.blobs.remove(Digest.parse(digest))
        return gone

    def _manifest_to_keep(self, row: Artifact) -> str | None:
        """None if it is kept already, or if the blob is damaged: then there is nothing that could be rebuilt."""
        if self.kept_manifest(row.digest) is not None:
            return None
        try:
            digest = Digest.parse(row.digest)
            opened = decode_verified(self.blobs.get(digest, row.size_bytes), digest)
            return encode_manifest(opened.manifest).decode()
        except CorruptError:
            return None

    def _set_state(self, change: Change, row: Artifact, state: str, reason: str) -> None:
        before, row.state, row.state_reason, row.state_since = row.state, state, reason, now()
        change.session.add(row)
        change.log(f"artifact.{state}", row.digest, before=before, reason=reason)


def _kept(row: Artifact, text: str) -> Measurement:
    return Measurement(
        id=new_id("m"),
        artifact=row.digest,
        kind=KEPT_MANIFEST,
        environment=row.environment,
        finding="kept",
        detail=text,
        created=now(),
    )
