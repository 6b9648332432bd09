"""Artifacts: deposit, reading, states, revocation, eviction. The order of steps here is what keeps them from loss.

Blob before row; row before visible; unreference before delete. Knows bytes and rows; does not look inside a
state (artifact.py) and never decides what may be grafted (core/gate).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from sqlmodel import col, select

from library.audit import now
from library.blobs import blob_path, packed_path
from library.digest import Digest
from library.errors import Conflict, DigestMismatch, StoreError, UsageError
from library.problems import found
from library.reviews import Encodable
from library.room import Room
from library.search import Candidate, Record, parse
from library.tables import Artifact, Attempt

# What `set_artifact_state` may do. Deposit, acceptance, eviction, return and revocation have methods of their own.
MOVES = {
    "published": ("held", "evicted", "quarantined"),
    "held": ("published", "quarantined"),
    "imported": ("quarantined",),
    "evicted": ("quarantined",),
}


class Artifacts(Room):
    # deposit

    def publish(self, attempt_id: str | None, encoded: Encodable, record: Artifact) -> Artifact:
        """Deposits an approved attempt's state: blob durable, then row and audit entry in one commit, then the
        staged copy goes. Idempotent: the same deposit again heals a damaged blob and returns the row.

        `attempt_id` is None only for a segment of a book. `Conflict` if the attempt is not approved or the artifact
        was revoked, quarantined, or imported and not yet accepted; `StorageFull` if the quota cannot hold it, before
        anything is written.
        """
        if attempt_id is None and record.kind != "segment":
            raise UsageError("an artifact needs the attempt that it comes from")
        record.digest, record.attempt_id, record.state = str(encoded.digest), attempt_id, "published"
        staged = self._check_publishable(attempt_id, record.digest)
        with self._locked(exclusive=self.quota_bytes is not None):
            self._make_room(encoded.size, keep=record.digest)
            record.stored_bytes = self.blobs.put(encoded.digest, encoded.parts())
            record.size_bytes, record.compression = encoded.size, "none"
            kept = self._publish_row(attempt_id, record)
            if staged is not None:
                with suppress(StoreError):  # the deposit is done; gc removes what is left in staging
                    self.blobs.unstage(Digest.parse(staged))
        return kept

    def _check_publishable(self, attempt_id: str | None, digest: str) -> str | None:
        with self._read() as session:
            existing = session.get(Artifact, digest)
            if existing is not None and existing.state in ("revoked", "quarantined"):
                raise Conflict(f"artifact {digest} is {existing.state} and does not come back; solve the problem anew")
            if existing is not None and existing.state == "imported":
                raise Conflict(f"artifact {digest} came in a bundle and waits for acceptance; accept or refuse it")
            if attempt_id is None:
                return None
            attempt = found(session.get(Attempt, attempt_id), "attempt", attempt_id)
            if attempt.review != "approved":
                raise Conflict(f"attempt {attempt_id} is {attempt.review}; only an approved one is published")
            return attempt.staged

    def _publish_row(self, attempt_id: str | None, record: Artifact) -> Artifact:
        with self._write() as change:
            row = change.session.get(Artifact, record.digest)
            if row is None:
                record.created = record.created or now()
                record.state_since = now()
                change.session.add(record)
                change.log("artifact.publish", record.digest, attempt=attempt_id, size=record.size_bytes)
                row = record
            else:
                row.stored_bytes, row.compression = record.stored_bytes, "none"  # the raw bytes are there again
                change.session.add(row)
            if row.state == "evicted":
                self._set_state(change, row, "published", "its bytes are back")
            if attempt_id is not None:
                attempt = found(change.session.get(Attempt, attempt_id), "attempt", attempt_id)
                if attempt.review != "approved":
                    raise Conflict(f"attempt {attempt_id} is {attempt.review}; only an approved one is published")
                attempt.staged = None
                change.session.add(attempt)
        return row

    # import

    def land_import(self, encoded: Encodable, record: Artifact, *, origin: str, actor: str) -> Artifact:
        """Keeps a foreign artifact as `imported`: on disk, but no candidate until a person accepts it.

        Never overwrites: an artifact that is known already stays as it is, and its record is returned.
        """
        record.digest, record.attempt_id, record.state = str(encoded.digest), None, "imported"
        with self._locked(exclusive=self.quota_bytes is not None):
            with self._read() as session:
                known = session.get(Artifact, record.digest)
            if known is not None:
                return known
            self._make_room(encoded.size, keep=record.digest)
            record.stored_bytes = self.blobs.put(encoded.digest, encoded.parts())
            record.size_bytes, record.origin = encoded.size, origin
            record.created, record.state_since = record.created or now(), now()
            with self._write(actor) as change:
                known = change.session.get(Artifact, record.digest)
                if known is not None:
                    return known
                change.session.add(record)
                change.log("artifact.import", record.digest, origin=origin, size=record.size_bytes)
        return record

    def accept_import(self, digests: Sequence[str], by: str) -> list[Artifact]:
        """Publishes imported artifacts, all or none. `Conflict` if one is not waiting for acceptance."""
        return self._settle_import(digests, "published", f"accepted by {by}", by)

    def refuse_import(self, digests: Sequence[str], by: str, reason: str) -> list[Artifact]:
        """Turns imported artifacts away for good, all or none; the reason is required."""
        if not reason.strip():
            raise UsageError("a refusal needs a reason")
        return self._settle_import(digests, "revoked", reason, by)

    def _settle_import(self, digests: Sequence[str], state: str, reason: str, by: str) -> list[Artifact]:
        with self._write(by) as change:
            rows = [found(change.session.get(Artifact, str(parse(name))), "artifact", name) for name in digests]
            for row in rows:
                if row.state != "imported":
                    raise Conflict(f"artifact {row.digest} is {row.state}; it does not wait for acceptance")
                if state == "published" and not self.blobs.has(parse(row.digest)):
                    raise Conflict(f"artifact {row.digest} has lost its bytes: import its bundle again first")
                self._set_state(change, row, state, reason)
        return rows

    # reading

    def artifact(self, name: str) -> Artifact:
        """The record with this digest, or with this unique beginning of it (6 hex digits or more)."""
        return as_row(self.index.resolve(name))

    def find_exact(self, canonical_key: str, identity: str | None = None) -> list[Artifact]:
        """Published solutions of the problem with this canonical key, newest first."""
        return [as_row(record) for record in self.index.exact(canonical_key, identity)]

    def candidates(self, query: str, k: int = 5, identity: str | None = None) -> list[Candidate]:
        """The `k` published solutions whose problems resemble the query most; whether one may serve is the gate's."""
        return self.index.candidates(query, k, identity)

    def artifacts(self, **conditions: Any) -> list[Artifact]:
        """A page of the table; `conditions` are those of `library.search.Index.artifacts`."""
        return [as_row(record) for record in self.index.artifacts(**conditions)]

    def count_artifacts(self, **conditions: Any) -> int:
        """How many records `artifacts` would page through."""
        return self.index.count(**conditions)

    def read_blob(self, digest: str) -> memoryview:
        """The artifact's bytes, read once into memory and verified there; later changes of the file do not matter.

        `MissingBlob` if the file is gone. If it holds other bytes, or is no plain file, it goes to quarantine, the
        record becomes `quarantined` with an audit entry, and `DigestMismatch` is raised.
        """
        parsed = parse(digest)
        sizes = self.index.query("SELECT size_bytes FROM artifact WHERE digest = ?", (str(parsed),))
        size = sizes[0][0] if sizes else None
        try:
            return self.blobs.get(parsed, size)
        except DigestMismatch as error:
            return self._quarantine_damaged(parsed, size, error)

    def _quarantine_damaged(self, digest: Digest, size: int | None, error: DigestMismatch) -> memoryview:
        with self._locked(exclusive=True):
            try:
                return self.blobs.get(digest, size)  # somebody may have healed it while we waited
            except DigestMismatch:
                pass
            with self._write() as change:
                row = change.session.get(Artifact, str(digest))
                if row is not None and row.state not in ("quarantined", "revoked"):
                    self._set_state(change, row, "quarantined", str(error))
            for path in (blob_path(digest), packed_path(digest)):
                self.blobs.set_aside(path)
        raise error

    # states

    def set_artifact_state(self, digest: str, state: str, reason: str, actor: str) -> Artifact:
        """Moves an artifact along one of `MOVES`; nothing if it is there already.

        `Conflict` for any other way: what was revoked or quarantined never comes back, what was imported is published
        by an acceptance only, and what was evicted by its bytes only.
        """
        with self._write(actor) as change:
            row = found(change.session.get(Artifact, str(parse(digest))), "artifact", digest)
            if row.state != state:
                if state not in MOVES.get(row.state, ()):
                    raise Conflict(f"artifact {row.digest} is {row.state}; that does not become {state[:40]}")
                if state == "published" and not self.blobs.has(parse(digest)):
                    raise Conflict(f"artifact {digest} has no bytes; it cannot be published")
                self._set_state(change, row, state, reason)
        return row

    def hold(self, digest: str, reason: str, actor: str) -> Artifact:
        """Takes an artifact out of use until a person looks at it."""
        return self.set_artifact_state(digest, "held", reason, actor)

    def release_hold(self, digest: str, reason: str, actor: str) -> Artifact:
        """Puts a held artifact back into use; the reason is required."""
        if not reason.strip():
            raise UsageError("a release needs a reason")
        if self.artifact(digest).state != "held":
            raise Conflict(f"artifact {digest} is not held")
        return self.set_artifact_state(digest, "published", reason, actor)

    def revoke(
        self,
        digest: str | None = None,
        *,
        verifier: str | None = None,
        model: str | None = None,
        reviewer: str | None = None,
        reason: str,
        actor: str,
    ) -> list[str]:
        """Takes artifacts out of use for good: one, or all that a verifier, model or reviewer stands behind (all
        given conditions must hold). Returns their digests. `UsageError` without a condition or a reason."""
        if not reason.strip():
            raise UsageError("a revocation needs a reason")
        query = select(Artifact).where(col(Artifact.state) != "revoked").order_by(col(Artifact.digest))
        given = {"verifier": verifier, "model": model, "reviewer": reviewer}
        if digest is None and not any(value is not None for value in given.values()):
            raise UsageError("name an artifact, a verifier, a model or a reviewer to revoke")
        if digest is not None:
            query = query.where(Artifact.digest == self.artifact(digest).digest)
        for name, value in given.items():
            if value is not None:
                query = query.where(getattr(Artifact, name) == value)
        with self._write(actor) as change:
            rows = list(change.session.exec(query))
            for row in rows:
                self._set_state(change, row, "revoked", reason)
        return [row.digest for row in rows]

    def pin(self, digest: str, actor: str, *, pinned: bool = True) -> Artifact:
        """A pinned artifact is never evicted."""
        with self._write(actor) as change:
            row = found(change.session.get(Artifact, str(parse(digest))), "artifact", digest)
            if row.pinned != pinned:
                row.pinned = pinned
                change.session.add(row)
                change.log("artifact.pin" if pinned else "artifact.unpin", row.digest)
        return row

    def unpin(self, digest: str, actor: str) -> Artifact:
        return self.pin(digest, actor, pinned=False)


def as_row(record: Record) -> Artifact:
    return Artifact(**asdict(record))
