"""Export and import: artifacts of one library to a bundle, and a bundle's artifacts to the door of another.

An import never publishes by itself: what it brings is `imported` until a person accepts it, or a trusted key's
signature stands for one. Knows rows and bundles; what a canonical key is, the caller says.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from library.artifact import Artifact as Opened
from library.artifact import encode
from library.audit import now
from library.bundle import BundleContents, BundleEntry, read_bundle, write_bundle
from library.digest import Digest
from library.errors import NotFound, StoreError, UsageError
from library.records import AttemptRecord, BundleRecord, DecisionRecord, EvidenceRecord, Listing, ProblemRecord
from library.signing import PublicKey, SigningKey
from library.store import Library
from library.tables import Artifact
from library.ustar import Writable

# Canonical key and its version for a problem's text (core/gate).
Keyed = Callable[[str], tuple[str, int]]
EXPORTABLE = ("published", "held")


@dataclass(frozen=True)
class Incoming:
    """One artifact of a bundle beside this library: `status` is `new`, the state it has here already, or `missing`
    if that state wants bytes and there are none."""

    digest: str
    problem: str
    answer: str
    model: str
    size: int
    status: str


@dataclass(frozen=True)
class Preview:
    """A bundle that was read and verified whole. `signed_by`: the trusted key's id, or None."""

    contents: BundleContents
    incoming: tuple[Incoming, ...]

    @property
    def new(self) -> tuple[Incoming, ...]:
        return tuple(item for item in self.incoming if item.status == "new")

    @property
    def lacking(self) -> tuple[Incoming, ...]:
        """Those that are known here and not out of use, but whose bytes are gone."""
        return tuple(item for item in self.incoming if item.status in ("evicted", "missing"))


def exportable(library: Library, digests: Sequence[str] | None = None) -> list[Artifact]:
    """The rows that a bundle would hold (all published ones if `digests` is None). `UsageError`, `NotFound`."""
    if digests is None:
        rows = [library.artifact(r.digest) for r in library.index.artifacts(states=["published"], limit=1_000_000)]
    else:
        rows = [library.artifact(name) for name in digests]
    bad = [row for row in rows if row.state not in EXPORTABLE]
    if bad:
        raise UsageError(f"artifact {bad[0].digest} is {bad[0].state}: only published or held ones are exported")
    if not rows:
        raise NotFound("there is no published artifact to export")
    return rows


def write_export(
    library: Library, stream: Writable, rows: Sequence[Artifact], *, signer: SigningKey | None = None
) -> Listing:
    """Write the artifacts to a stream, one at a time. `CorruptError` for a damaged one."""
    return write_bundle(stream, [_entry(library, row) for row in rows], created=now(), signer=signer)


def export_bundle(
    library: Library, path: Path, digests: Sequence[str] | None = None, *, signer: SigningKey | None = None
) -> Listing:
    """Write published artifacts (all if `digests` is None) to a new file at `path`, one at a time.

    Raises `UsageError` if the file exists or an artifact cannot be exported, `CorruptError` for a damaged one; the
    unfinished file is removed then.
    """
    rows = exportable(library, digests)
    try:
        with path.open("xb") as stream:
            return write_export(library, stream, rows, signer=signer)
    except FileExistsError as error:
        raise UsageError(f"{path} exists already: name another file") from error
    except OSError as error:
        path.unlink(missing_ok=True)
        raise StoreError(f"cannot write {path}: {error.strerror}") from error
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def preview_bundle(library: Library, path: Path, *, require_signature: bool = False) -> Preview:
    """Read and verify a whole bundle and say what of it is new here. Changes nothing."""
    found: list[Incoming] = []

    def see(record: BundleRecord, opened: Opened, blob: memoryview) -> None:
        written = opened.manifest
        status = _status(library, str(opened.digest))
        found.append(Incoming(str(opened.digest), written.problem, written.answer, record.model, blob.nbytes, status))

    with _opened(path) as stream:
        contents = read_bundle(stream, see, trusted=trusted_keys(library), require_signature=require_signature)
    return Preview(contents, tuple(found))


def import_bundle(library: Library, path: Path, keyed: Keyed, *, actor: str) -> tuple[str, ...]:
    """Bring a bundle's new artifacts in as `imported`; the digests that came in. Verifies everything first.

    A known artifact that lost its bytes (evicted, or missing) gets the same bytes back and keeps its record.
    """
    preview = preview_bundle(library, path)
    wanted = {item.digest for item in preview.new}
    lacking = {item.digest for item in preview.lacking}
    origin = f"bundle {preview.contents.digest}"

    def land(record: BundleRecord, opened: Opened, blob: memoryview) -> None:
        if str(opened.digest) in wanted:
            encoded = encode(opened.manifest, tuple(opened.tensors.values()))
            library.land_import(encoded, _row(record, opened, blob, keyed), origin=origin, actor=actor)
        elif str(opened.digest) in lacking:
            library.put_back(encode(opened.manifest, tuple(opened.tensors.values())), actor=actor)

    with _opened(path) as stream:
        read_bundle(stream, land, trusted=trusted_keys(library))
    return tuple(sorted(wanted))


def trusted_keys(library: Library) -> dict[str, PublicKey]:
    """The keys whose signature this library believes, by id; its own among them."""
    rows = library.keys()
    return {key.id: PublicKey.parse(key.public) for key in rows if key.trust in ("own", "trusted")}


def _opened(path: Path) -> BinaryIO:
    try:
        stream = os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb")  # a pipe would block
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            stream.close()
            raise UsageError(f"{path} is no plain file: a bundle is read twice")
        return stream
    except OSError as error:
        raise NotFound(f"cannot read the bundle {path}: {error.strerror}") from error


def _status(library: Library, digest: str) -> str:
    try:
        state = library.artifact(digest).state
    except NotFound:
        return "new"
    wants = state in ("published", "held", "imported")
    return "missing" if wants and not library.blobs.has(Digest.parse(digest)) else state


def _entry(library: Library, row: Artifact) -> BundleEntry:
    def blob() -> Iterator[memoryview]:
        yield library.read_blob(row.digest)

    return BundleEntry(_record(library, row), row.size_bytes, blob)


def _record(library: Library, row: Artifact) -> BundleRecord:
    problem = attempt = None
    evidence: Iterable[EvidenceRecord] = ()
    decisions: Iterable[DecisionRecord] = ()
    if row.attempt_id is not None:
        tried = library.attempt(row.attempt_id)
        asked = library.problem(tried.problem_id)
        problem = ProblemRecord(id=asked.id, source=asked.source, created=asked.created, created_by=asked.created_by)
        attempt = AttemptRecord(
            id=tried.id,
            number=tried.number,
            origin=tried.origin,
            status=tried.status,
            version=tried.version,
            created=tried.created,
            created_by=tried.created_by,
        )
        evidence = (
            EvidenceRecord.model_validate(
                {
                    "check": e.check_name,
                    "outcome": e.outcome,
                    "summary": e.summary,
                    "detail": e.detail,
                    "verifier": e.verifier,
                    "created": e.created,
                }
            )
            for e in library.evidence(tried.id)
        )
        decisions = (
            DecisionRecord.model_validate(
                {
                    "id": d.id,
                    "attempt_version": d.attempt_version,
                    "reviewer": d.reviewer,
                    "action": d.action,
                    "reason": d.reason,
                    "created": d.created,
                }
            )
            for d in library.decisions(tried.id)
        )
    return BundleRecord(
        digest=row.digest,
        model=row.model,
        verifier=row.verifier,
        reviewer=row.reviewer,
        problem=problem,
        attempt=attempt,
        evidence=tuple(evidence),
        decisions=tuple(decisions),
    )


def _row(record: BundleRecord, opened: Opened, blob: memoryview, keyed: Keyed) -> Artifact:
    written = opened.manifest
    key, version = keyed(written.problem)
    cost = written.cost
    return Artifact(
        digest=str(opened.digest),
        kind=written.kind,
        state="imported",
        problem_text=written.problem,
        canonical_key=key,
        canonical_version=version,
        answer=written.answer,
        model=record.model,
        identity=written.identity.digest,
        environment=written.environment.digest,
        verifier=record.verifier,
        reviewer=record.reviewer,
        size_bytes=blob.nbytes,
        stored_bytes=blob.nbytes,
        graft_point=written.graft_point,
        solve_tokens=cost.decode_tokens,
        solve_seconds=cost.microseconds / 1e6,
        solve_flops=cost.flops,
        solve_joules=None if cost.millijoules is None else cost.millijoules / 1e3,
        parent=written.parent,
        created="",
    )
