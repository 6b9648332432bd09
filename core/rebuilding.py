"""Giving an evicted artifact its bytes again, by replay: they must be the very bytes, or nothing is put back.

Knows library, manifests and replay; not who asks for it.
"""

from __future__ import annotations

import threading

from core.graft import check_identity
from core.model import FrozenModel
from core.replay import Progress, resume
from core.resuming import Kept
from core.state import state_tensors
from library.artifact import encode, tensor_digests
from library.digest import Digest
from library.errors import Conflict
from library.store import Library
from library.tables import Artifact


def rebuild_artifact(
    model: FrozenModel,
    library: Library,
    digest: str,
    *,
    by: str,
    on_progress: Progress | None = None,
    cancelled: threading.Event | None = None,
) -> Artifact:
    """The artifact's record, its bytes on disk again; unchanged if they are there. Goes on after an interruption.

    Raises `Conflict` if it is out of use, if no manifest was kept, or if other bytes come out (another environment
    rounds differently); `IdentityMismatch`, `StorageFull`, `Cancelled`.
    """
    row = library.artifact(digest)
    if row.state not in ("published", "held", "imported", "evicted"):
        raise Conflict(f"artifact {row.digest} is {row.state}: it does not come back")
    if row.state != "evicted" and library.blobs.has(Digest.parse(row.digest)):
        return row
    written = library.kept_manifest(row.digest)
    if written is None:
        raise Conflict(f"no manifest of artifact {row.digest} was kept: import it from a bundle, or solve it again")
    check_identity(model, written.identity)
    kept = Kept(library, model, row.digest, written)
    found = resume(model, written, on_progress=on_progress, cancelled=cancelled, checkpoints=kept)
    if found.resumed and tensor_digests(state_tensors(found.state)) != written.tensors:
        kept.drop()
        found = resume(model, written, on_progress=on_progress, cancelled=cancelled, checkpoints=kept)
    kept.drop()
    tensors = state_tensors(found.state)
    digests = tensor_digests(tensors)
    if digests != written.tensors:
        odd = sum(digests.get(name) != wanted for name, wanted in written.tensors.items())
        raise Conflict(
            f"artifact {row.digest} cannot be rebuilt here: {odd} of {len(written.tensors)} tensors differ; "
            "import it from a bundle, or rebuild it in the environment of its deposit"
        )
    encoded = encode(written, tensors)
    if str(encoded.digest) != row.digest:
        raise Conflict(f"artifact {row.digest} rebuilds to {encoded.digest}: its manifest is not the one that was kept")
    return library.put_back(encoded, actor=by)
