"""Is the library whole? Compares rows, files and the log, and names all that does not fit.

Knows what should be where. Never deletes: a repair moves files to quarantine and says so in the records.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlmodel import col, select

from library.audit import now
from library.blobs import BLOBS, STAGING, TEMPORARY, Stray, blob_path, packed_path, staged_path
from library.digest import Digest, digest_bytes
from library.errors import CorruptError, DigestMismatch, StoreError
from library.store import Library
from library.tables import Artifact, Attempt

NEEDS_BLOB = ("published", "held", "imported")
MAY_HAVE_BLOB = (*NEEDS_BLOB, "revoked")  # until gc
GRACE_SECONDS = 3600.0  # a younger file may belong to work in progress of another process
NOTES = ("extra", "leftover", "temporary")


@dataclass(frozen=True)
class Finding:
    """One thing that does not fit. `subject` is a digest, an id or a path; `repaired` says what was done, or "".

    Kinds that are damage: `missing`, `corrupt`, `swapped` (another artifact's bytes), `wrong-type`, `dangling`,
    `unapproved`, `audit`, `database`, `index`. Kinds that are only notes: `extra` (a file that no record refers
    to), `leftover` (a staged state of no attempt), `temporary` (of an interrupted write).
    """

    kind: str
    subject: str
    detail: str
    repaired: str = ""


@dataclass(frozen=True)
class Report:
    findings: tuple[Finding, ...]
    records: int
    files: int
    bytes_read: int

    @property
    def damage(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.kind not in NOTES)

    @property
    def exit_code(self) -> int:
        """3 if anything is damaged, whether repaired or not; else 0."""
        return CorruptError.exit_code if self.damage else 0


def check(library: Library, read_data: bool = False, repair: bool = False, *, grace: float = GRACE_SECONDS) -> Report:
    """Looks at every record and file; with `read_data` also at every byte. Holds the maintenance lock for a repair.

    `repair` sets damaged and unreferenced files aside, marks their records `quarantined`, lets attempts forget
    staged states that are gone, and rebuilds the text index. It cannot mend the audit log or the database.
    """
    run = _Check(library, read_data, repair, grace)
    if not repair:
        return run.report()
    with library._locked(exclusive=True):
        return run.report()


class _Check:
    def __init__(self, library: Library, read_data: bool, repair: bool, grace: float) -> None:
        self.library, self.read_data, self.repair, self.grace = library, read_data, repair, grace
        self.records = self.files = self.bytes_read = 0

    def report(self) -> Report:
        findings = [*self._database(), *self._records(), *self._blobs(), *self._staged(), *self._strays()]
        if not any(finding.kind == "database" for finding in findings):
            findings += [*self._index(), *self._audit()]
        return Report(tuple(findings), self.records, self.files, self.bytes_read)

    def _database(self) -> Iterator[Finding]:
        pragma = "integrity_check" if self.read_data else "quick_check"
        for (line,) in self.library.index.query(f"PRAGMA {pragma}(20)"):
            if line != "ok":
                yield Finding("database", "library.db", str(line))

    def _records(self) -> Iterator[Finding]:
        for table, row, parent, _ in self.library.index.query("PRAGMA foreign_key_check"):
            yield Finding("dangling", f"{table} row {row}", f"refers to a {parent} that is not there")
        unapproved = """SELECT artifact.digest, attempt.review FROM artifact JOIN attempt ON attempt.id = attempt_id
            WHERE artifact.state IN ('published', 'held') AND attempt.review <> 'approved'"""
        for digest, review in self.library.index.query(unapproved):
            yield Finding("unapproved", digest, f"is in use, but its attempt is {review}")

    def _blobs(self) -> Iterator[Finding]:
        after = ""
        while True:
            sql = f"""SELECT digest, size_bytes, stored_bytes, compression FROM artifact
                WHERE digest > ? AND state IN {NEEDS_BLOB} ORDER BY digest LIMIT 500"""
            page = self.library.index.query(sql, (after,))
            for digest, size, stored, compression in page:
                self.records += 1
                yield from self._blob(Digest.parse(digest), size, stored, compression != "none")
            if not page:
                return
            after = page[-1][0]

    def _blob(self, digest: Digest, size: int, stored: int, packed: bool) -> Iterator[Finding]:
        path = packed_path(digest) if packed else blob_path(digest)
        try:
            found = self.library.fs.stat(path)
        except OSError as error:
            yield self._damaged("wrong-type", digest, f"its folder cannot be used: {error.strerror}")
            return
        if found is None:
            yield self._damaged("missing", digest, "there is no blob of that name")
        elif found.kind != "file":
            yield self._damaged("wrong-type", digest, f"a {found.kind} stands in the blob's place")
        elif self.read_data:
            yield from self._packed(digest, size) if packed else self._bytes(digest, path)
        elif found.size != stored:
            yield self._damaged("corrupt", digest, f"the blob has {found.size} bytes, its record says {stored}")

    def _packed(self, digest: Digest, size: int) -> Iterator[Finding]:
        try:
            self.bytes_read += len(self.library.blobs.unpack(digest, size))
        except DigestMismatch as error:
            yield self._damaged("corrupt", digest, str(error))
        except StoreError as error:
            yield Finding("corrupt", str(digest), str(error))

    def _bytes(self, digest: Digest, path: str) -> Iterator[Finding]:
        try:
            data = self.library.fs.read(path)
        except OSError as error:
            yield Finding("corrupt", str(digest), f"cannot be read: {error.strerror}")
            return
        self.bytes_read += len(data)
        actual = digest_bytes(data)
        if actual == digest:
            return
        other = self.library.index.query("SELECT 1 FROM artifact WHERE digest = ?", (str(actual),))
        kind = "swapped" if other else "corrupt"
        yield self._damaged(kind, digest, f"the blob's bytes have digest {actual}")

    def _staged(self) -> Iterator[Finding]:
        for identifier, staged in self.library.index.query("SELECT id, staged FROM attempt WHERE staged IS NOT NULL"):
            self.records += 1
            digest = Digest.parse(staged)
            found = self.library.fs.stat(staged_path(digest))
            detail = ""
            if found is None or found.kind != "file":
                detail = f"staged state {staged} is {'missing' if found is None else f'a {found.kind}'}"
            elif self.read_data:
                data = self.library.fs.read(staged_path(digest))
                self.bytes_read += len(data)
                detail = "" if digest_bytes(data) == digest else f"staged state {staged} holds other bytes"
            if detail:
                repaired = self._forget_staged(identifier, staged) if self.repair else ""
                kind = "missing" if found is None else "wrong-type" if found.kind != "file" else "corrupt"
                yield Finding(kind, identifier, detail, repaired)

    def _strays(self) -> Iterator[Finding]:
        for stray in self.library.blobs.walk():
            self.files += 1
            finding = self._stray(stray)
            if finding is None:
                continue
            if self.repair and stray.age >= self.grace:
                moved = self.library.blobs.set_aside(stray.path)
                finding = Finding(finding.kind, finding.subject, finding.detail, f"moved to {moved}" if moved else "")
            yield finding

    def _stray(self, stray: Stray) -> Finding | None:
        name = stray.path.rpartition("/")[2]
        if name.startswith(TEMPORARY):
            return Finding("temporary", stray.path, f"left by an interrupted write, {stray.size} bytes")
        if stray.digest is None:
            return Finding("extra", stray.path, f"a {stray.kind} whose name is no digest")
        if stray.path.startswith(f"{STAGING}/"):
            query = select(Attempt.id).where(Attempt.staged == str(stray.digest))
            with self.library._read() as session:
                used = session.exec(query).first() or str(stray.digest) in self.library.checkpointed()
            detail = f"a staged state of no attempt, {stray.size} bytes"
            return None if used else Finding("leftover", stray.path, detail)
        sql = "SELECT state, compression FROM artifact WHERE digest = ?"  # one a file: no row object for each
        said = "no record"
        for state, compression in self.library.index.query(sql, (str(stray.digest),)):
            if state in MAY_HAVE_BLOB and stray.packed == (compression != "none"):
                return None
            said = f"a record that is {state}, {compression}"
        return Finding("extra", f"{BLOBS}: {stray.digest}", f"a {stray.kind} with {said}, {stray.size} bytes")

    def _index(self) -> Iterator[Finding]:
        sql = """SELECT (SELECT count(*) FROM artifact WHERE state = 'published' AND kind = 'solution'),
            (SELECT count(*) FROM problemdoc JOIN artifact USING (digest) WHERE state = 'published')"""
        ((published, indexed),) = self.library.index.query(sql)
        try:
            with self.library._write() as change:
                change.execute("INSERT INTO problemindex (problemindex, rank) VALUES ('integrity-check', 1)")
            broken = ""
        except (CorruptError, StoreError) as error:
            broken = str(error)
        if published != indexed or broken:
            repaired = self._rebuild_index() if self.repair else ""
            yield Finding("index", "problemindex", broken or f"holds {indexed} of {published} problems", repaired)

    def _audit(self) -> Iterator[Finding]:
        bad = self.library.verify_log()
        if bad is not None:
            yield Finding("audit", f"entry {bad.seq}", bad.reason)

    def _damaged(self, kind: str, digest: Digest, detail: str) -> Finding:
        repaired = ""
        if self.repair:
            with self.library._write() as change:
                row = change.session.get(Artifact, str(digest))
                if row is not None and row.state in NEEDS_BLOB:
                    self.library._set_state(change, row, "quarantined", f"check: {detail}")
            repaired = "record quarantined"
            for path in (blob_path(digest), packed_path(digest)):
                try:
                    moved = self.library.blobs.set_aside(path)
                    repaired += f", file moved to {moved}" if moved else ""
                except CorruptError as error:
                    repaired += f", file left: {error}"
        return Finding(kind, str(digest), detail, repaired)

    def _forget_staged(self, identifier: str, staged: str) -> str:
        with self.library._write() as change:
            attempt = change.session.exec(select(Attempt).where(col(Attempt.id) == identifier)).one()
            attempt.staged = None
            change.session.add(attempt)
            change.log("attempt.discard_state", identifier, staged=staged, reason="check: not whole", time=now())
        moved = self.library.blobs.set_aside(staged_path(Digest.parse(staged)))
        return "attempt forgets it" + (f", file moved to {moved}" if moved else "")

    def _rebuild_index(self) -> str:
        with self.library._write() as change:
            change.execute("DELETE FROM problemdoc")
            change.execute(
                "INSERT INTO problemdoc (digest) SELECT digest FROM artifact "
                "WHERE state = 'published' AND kind = 'solution' ORDER BY created"
            )
            change.execute("INSERT INTO problemindex (problemindex) VALUES ('rebuild')")
            change.log("index.rebuild", "problemindex")
        return "rebuilt"
