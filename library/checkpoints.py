"""Where a replay goes on after an interruption: the newest checkpoint of each artifact and environment.

A checkpoint is a staged artifact file of the first positions (core/resuming.py makes and proves it). The record of
its digest, in the database and in the audit log, is what it must match; a file without one is never read. Knows
names, not what a replay is.
"""

from __future__ import annotations

import json
from contextlib import suppress

from sqlmodel import col, select
from sqlmodel.sql.expression import SelectOfScalar

from library.audit import now
from library.cold import Cold
from library.digest import Digest
from library.errors import CorruptError, StoreError
from library.reviews import Encodable
from library.tables import Attempt, Meta

_PREFIX = "replay "


class Checkpoints(Cold):
    def keep_checkpoint(self, artifact: str, environment: str, encoded: Encodable, position: int) -> None:
        """Keeps a checkpoint durably and lets go of the one before. `StorageFull` if the quota has no room for it
        beside what is there: a checkpoint makes nobody else go."""
        digest = str(encoded.digest)
        with self._locked(exclusive=False):
            if self.quota_bytes is not None and self.used_bytes() + encoded.size > self.quota_bytes:
                return
            self.blobs.stage(encoded.digest, encoded.parts())
            with self._write() as change:
                row = change.session.get(Meta, _key(artifact, environment))
                before = None if row is None else _staged(row)
                row = row or Meta(key=_key(artifact, environment), value="")
                row.value = json.dumps({"created": now(), "position": position, "staged": digest})
                change.session.add(row)
                change.log("replay.checkpoint", artifact, staged=digest, position=position)
            if before is not None and before != digest:
                self._let_go(before)

    def replay_checkpoint(self, artifact: str, environment: str) -> str | None:
        """The digest of the staged file that a replay may go on from."""
        with self._read() as session:
            row = session.get(Meta, _key(artifact, environment))
        return None if row is None else _staged(row)

    def drop_checkpoint(self, artifact: str, environment: str) -> None:
        """The replay is over, or the checkpoint is no good."""
        with self._locked(exclusive=False):
            with self._write() as change:
                row = change.session.get(Meta, _key(artifact, environment))
                if row is None:
                    return
                before = _staged(row)
                change.session.delete(row)
                change.log("replay.over", artifact, staged=before)
            self._let_go(before)

    def checkpointed(self) -> set[str]:
        """The staged files that some checkpoint refers to."""
        with self._read() as session:
            return {_staged(row) for row in session.exec(_all())}

    def _let_go_of_spare(self) -> bool:
        """Checkpoints go before any artifact does: all that is lost is the time of a replay."""
        spare = self.checkpointed()
        self._forget_checkpoints("9999")
        for staged in spare:
            self._let_go(staged)
        return bool(spare)

    def _forget_checkpoints(self, before: str) -> None:
        """Forgets those that nobody went on from since `before`; gc then finds their files unreferenced."""
        with self._read() as session:
            old = [row.key for row in session.exec(_all()) if json.loads(row.value)["created"] < before]
        if not old:
            return
        with self._write() as change:
            for key in old:
                row = change.session.get(Meta, key)
                if row is not None:
                    change.session.delete(row)
            change.log("replay.forget", f"{len(old)} checkpoints", before=before)

    def _let_go(self, staged: str) -> None:
        with self._read() as session:
            wanted = session.exec(select(Attempt.id).where(Attempt.staged == staged)).first()
        if wanted is None and staged not in self.checkpointed():
            with suppress(StoreError, CorruptError):  # gc removes what is left
                self.blobs.unstage(Digest.parse(staged))


def _key(artifact: str, environment: str) -> str:
    return f"{_PREFIX}{artifact} {environment}"


def _staged(row: Meta) -> str:
    return str(json.loads(row.value)["staged"])


def _all() -> SelectOfScalar[Meta]:
    return select(Meta).where(col(Meta.key).startswith(_PREFIX))
