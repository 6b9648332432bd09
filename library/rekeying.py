"""Records whose exact-lookup key was made by older rules get the key of today's. Knows rows, not how a key is made.

A record with an old key is never wrong, only missed by the exact lookup; so this may be stopped at any point.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlmodel import col, select

from library.database import Database
from library.tables import Artifact, Problem

BATCH = 200  # records a transaction


def stale(library: Database, version: int) -> int:
    """How many problems and solutions have a key older than `version`. Two index lookups where there is none."""
    counts = "SELECT (SELECT count(*) FROM artifact WHERE kind = 'solution' AND canonical_version < ?)"
    counts += " + (SELECT count(*) FROM problem WHERE canonical_version < ?)"
    return int(library.index.query(counts, (version, version))[0][0])


def rekey(
    library: Database, key_of: Callable[[str], str], version: int, *, limit: int | None = None, actor: str | None = None
) -> int:
    """Gives at most `limit` records with an older key the key `key_of(text)` of `version`; how many.

    One transaction and one audit entry a batch; where no key is old, nothing is written and no lock taken. Keys of a
    newer version are left as they are: this program is then the older one.
    """
    done = 0
    while (limit is None or done < limit) and stale(library, version):
        room = BATCH if limit is None else min(BATCH, limit - done)
        done += _batch(library, key_of, version, room, actor)
    return done


def _batch(library: Database, key_of: Callable[[str], str], version: int, room: int, actor: str | None) -> int:
    with library._write(actor) as change:
        old = col(Artifact.canonical_version) < version
        artifacts = change.session.exec(select(Artifact).where(old, Artifact.kind == "solution").limit(room)).all()
        older = col(Problem.canonical_version) < version
        problems = change.session.exec(select(Problem).where(older).limit(room - len(artifacts))).all()
        for artifact in artifacts:
            artifact.canonical_key, artifact.canonical_version = key_of(artifact.problem_text), version
        for problem in problems:
            problem.canonical_key, problem.canonical_version = key_of(problem.text), version
        changed = len(artifacts) + len(problems)
        if changed:
            change.log("library.rekey", str(version), artifacts=len(artifacts), problems=len(problems))
    return changed
