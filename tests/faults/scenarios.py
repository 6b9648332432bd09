"""Things that a library does, for crash tests: what is there before, the work, and what must hold after."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from library.blobs import blob_path
from library.bundle import BundleEntry, write_bundle
from library.check import check
from library.digest import Digest, digest_bytes
from library.errors import DigestMismatch
from library.exchange import import_bundle
from library.gc import collect
from library.records import BundleRecord
from library.store import Library
from tests.library.artifacts import artifact_bytes
from tests.library.stores import deposit, key_of, record_of, state_of

PROMPTLY = {"grace": 0.0, "revoked_grace": 0.0}


@dataclass
class Promises:
    """What the library has acknowledged: texts that must be found, digests that must never be found again, and
    whole artifacts by digest."""

    kept: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    whole: dict[str, bytes] = field(default_factory=dict)


Work = Callable[[Library, Promises], None]


def before(library: Library, promises: Promises) -> None:
    for text in ("first", "second"):
        deposit(library, text)
        promises.kept.append(text)


def do_deposit(library: Library, promises: Promises) -> None:
    deposit(library, "third")
    promises.kept.append("third")


def do_heal(library: Library, promises: Promises) -> None:
    """The same deposit again over a damaged file. Until it is healed the file is damaged, so it is no promise."""
    row = library.find_exact(key_of("damaged"))[0]
    library.publish(row.attempt_id, state_of("damaged"), record_of("damaged"))
    promises.kept.append("damaged")


def before_heal(library: Library, promises: Promises) -> None:
    before(library, promises)
    row = deposit(library, "damaged")
    (library.root / blob_path(Digest.parse(row.digest))).write_bytes(b"not what it was")


def do_revoke(library: Library, promises: Promises) -> None:
    promises.kept.remove("second")
    (digest,) = library.revoke(library.find_exact(key_of("second"))[0].digest, reason="wrong", actor="ada")
    promises.gone.append(digest)
    collect(library, **PROMPTLY)


def before_gc(library: Library, promises: Promises) -> None:
    before(library, promises)
    for text in ("orphan", "another orphan"):
        library.blobs.put(state_of(text).digest, state_of(text).parts())
    library.stage(state_of("left over"))
    (library.root / "staging" / ".tmp-0123").write_bytes(b"half")
    for path in [*(library.root / "blobs").rglob("*"), *(library.root / "staging").iterdir()]:
        os.utime(path, (time.time() - 10,) * 2)


def do_gc(library: Library, promises: Promises) -> None:
    assert len(collect(library, **PROMPTLY).removed) == 4


def do_quarantine(library: Library, promises: Promises) -> None:
    row = library.find_exact(key_of("damaged"))[0]
    try:
        library.read_blob(row.digest)
    except DigestMismatch:
        promises.gone.append(row.digest)


def do_import(library: Library, promises: Promises) -> None:
    row = library.land_import(state_of("foreign"), record_of("foreign"), origin="bundle", actor="ada")
    if row.state == "imported":
        library.accept_import([row.digest], "ada")
    promises.kept.append("foreign")


def _bundled() -> dict[str, bytes]:
    made = [artifact_bytes(scale, problem=f"foreign {scale}") for scale in (1, 2, 3)]
    return {str(digest_bytes(data)): data for data in made}


def before_bundle(library: Library, promises: Promises) -> None:
    before(library, promises)
    entries = [
        BundleEntry(
            BundleRecord(
                digest=digest,
                model="m",
                verifier="v",
                reviewer="r",
                problem=None,
                attempt=None,
                evidence=(),
                decisions=(),
            ),
            len(data),
            lambda data=data: [data],
        )
        for digest, data in _bundled().items()
    ]
    with (library.root.parent / "foreign.bundle").open("wb") as stream:
        write_bundle(stream, entries, created="2026-01-01T00:00:00.000000Z")


def do_bundle(library: Library, promises: Promises) -> None:
    """May be done again after it stopped: what came in already is left alone."""
    import_bundle(library, library.root.parent / "foreign.bundle", lambda text: (key_of(text), 1), actor="bob")
    waiting = [row.digest for row in library.artifacts(states=["imported"])]
    library.accept_import(waiting, "bob")
    promises.whole.update(_bundled())


def do_pack(library: Library, promises: Promises) -> None:
    library.pack(library.find_exact(key_of("first"))[0].digest)


def before_unpack(library: Library, promises: Promises) -> None:
    before(library, promises)
    do_pack(library, promises)


def do_unpack(library: Library, promises: Promises) -> None:
    library.unpack(library.find_exact(key_of("first"))[0].digest)


def before_evict(library: Library, promises: Promises) -> None:
    for text in ("large one", "large two"):
        deposit(library, text, 3000)
    library.quota_bytes = 8000


def do_evict(library: Library, promises: Promises) -> None:
    library.quota_bytes = 8000
    deposit(library, "large three", 3000)
    promises.kept.append("large three")


SCENARIOS: dict[str, tuple[Work, Work]] = {
    "deposit": (before, do_deposit),
    "heal": (before_heal, do_heal),
    "revoke": (before, do_revoke),
    "gc": (before_gc, do_gc),
    "quarantine": (before_heal, do_quarantine),
    "import": (before, do_import),
    "bundle": (before_bundle, do_bundle),
    "pack": (before, do_pack),
    "unpack": (before_unpack, do_unpack),
    "evict": (before_evict, do_evict),
}


def hold(library: Library, promises: Promises, *, damaged: bool = False) -> None:
    """Asserts that every promise is kept and nothing dangles. `damaged`: damage of before may still be there."""
    for text in promises.kept:
        (row,) = library.find_exact(key_of(text))
        assert bytes(library.read_blob(row.digest)) == state_of(text, row.size_bytes).data, f"{text!r} was lost"
    for digest, data in promises.whole.items():
        assert library.artifact(digest).state == "published"
        assert bytes(library.read_blob(digest)) == data
    for digest in promises.gone:
        assert library.artifact(digest).state in ("revoked", "quarantined")
    report = check(library, read_data=True)
    allowed = {str(row.digest) for row in library.find_exact(key_of("damaged"))} if damaged else set()
    assert [finding for finding in report.damage if finding.subject not in allowed] == []


def finish(library: Library) -> None:
    """What a start after a crash does: publish what was approved, then collect what nobody refers to."""
    for attempt in library.unpublished():
        text = library.problem(attempt.problem_id).text
        size = len(library.read_staged(attempt.staged or ""))
        library.publish(attempt.id, state_of(text, size), record_of(text))
    collect(library, **PROMPTLY)
    notes = check(library, read_data=True, grace=0.0).findings
    assert [finding for finding in notes if finding.kind in ("extra", "leftover", "temporary")] == []
