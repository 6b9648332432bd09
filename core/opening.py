"""Opening an artifact for use: its bytes, its model, its tokens, its place in the library. All are checked, each time.

Knows what makes a stored state usable; not which one is wanted (core/gate) nor what is done with it (core/asking.py).
"""

from __future__ import annotations

from core.graft import check_identity
from core.integrity import check_usable
from core.model import FrozenModel
from library.artifact import Artifact as Opened
from library.artifact import decode_verified
from library.digest import Digest
from library.errors import Conflict, IdentityMismatch
from library.manifest import Manifest
from library.store import Library
from library.tables import Artifact

__all__ = ["check_tokens", "check_usable", "open_artifact", "same_tokens"]

LONGEST_LINEAGE = 16  # states that may stand before one another; each is read to prove the next


def open_artifact(library: Library, model: FrozenModel, row: Artifact) -> Opened:
    """Read, verify and parse an artifact once, and check that it is the model's own and its row's.

    Raises `CorruptError` (the blob is quarantined then), `IdentityMismatch`, `StoreError`.
    """
    check_row_identity(model, row)
    opened = decode_verified(library.read_blob(row.digest), Digest.parse(row.digest))  # hashed as it was read
    check_identity(model, opened.manifest.identity)
    return opened


def check_row_identity(model: FrozenModel, row: Artifact) -> None:
    """A cheap refusal before any bytes are read; the manifest, which names the fields, is checked after."""
    if row.identity != model.identity.digest and row.model == model.name:
        return  # same name, other bytes: let the manifest name the field that differs
    if row.identity != model.identity.digest:
        raise IdentityMismatch({"model": (row.model, model.name)})


def check_tokens(library: Library, model: FrozenModel, opened: Opened, row: Artifact) -> None:
    """Raises `IdentityMismatch` unless `same_tokens`."""
    if not same_tokens(library, model, opened, row):
        raise IdentityMismatch({"tokens": ("the state's prompt tokens", "those of its problem's text")})


def same_tokens(library: Library, model: FrozenModel, opened: Opened, row: Artifact) -> bool:
    """Are the artifact's prompt tokens exactly those of its problem's text, and is that the text that was judged?

    A hash hit alone never counts, and neither does an end that fits: foreign tokens in front would be attended to as
    well. A transfer's prompt is its parent's tokens and a new turn, so the parent is read and proven in its turn; it
    must be in use too. Raises what reading it raises, and `Conflict` if it is out of use.
    """
    written = opened.manifest
    if written.problem != row.problem_text:
        return False
    for _ in range(LONGEST_LINEAGE):
        if written.parent is None:
            return written.prompt_ids == tuple(model.prompt_ids(written.problem))
        parent = _parent(library, model, written.parent)
        turn = tuple(model.next_turn_ids(model.profile.instruction.format(problem=written.problem)))
        if written.prompt_ids != parent.prompt_ids + parent.attempt_ids + turn:
            return False
        written = parent
    return False


def _parent(library: Library, model: FrozenModel, digest: str) -> Manifest:
    """The manifest of the state that a transfer went on from, its bytes verified."""
    state = library.artifact(digest).state  # `NotFound` where a bundle brought the child alone
    if state != "published":
        raise Conflict(f"it goes on from artifact {digest[:19]}…, which is {state}: its tokens cannot be proven")
    parent = decode_verified(library.read_blob(digest), Digest.parse(digest)).manifest
    check_identity(model, parent.identity)
    return parent
