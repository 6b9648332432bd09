"""A segment's state: prefilled, captured, certified, published; opened for an answer; rebuilt when its bytes are gone.

A segment's manifest holds no time and no cost, so that the same text under the same model in the same environment
gives the same artifact: an interrupted ingest deposits it again under the same name, and a dropped one can be
rebuilt from its record alone. Knows one segment at a time; not how a text was cut, nor who asks.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from core.books import prompt
from core.cache import new_cache
from core.deposit import prefill_manifest
from core.gate import CANONICAL_VERSION
from core.graft import Exactness, compare, follow_cue, grafted
from core.model import FrozenModel
from core.opening import open_artifact
from core.replay import rebuild
from core.solve import prefill
from core.state import State, capture, state_tensors
from library import manifest as m
from library import tables
from library.artifact import Artifact as Opened
from library.artifact import Encoded, encode, tensor_digests
from library.digest import digest_bytes
from library.errors import Conflict, ContextOverflow, IdentityMismatch
from library.store import Library

PROBE_TOKENS = 3  # of the certificate's continuation
QUESTION_ROOM = 256  # positions kept for the question and what the template puts around it
ANSWER_ROOM = 64  # positions kept for the answer
KEPT_MANIFEST = "segment-manifest"  # kind of the measurement that keeps a segment's manifest beside its blob
GONE = ("quarantined", "revoked")  # states of an artifact that never come back


@dataclass(frozen=True)
class Deposited:
    """A segment's artifact and what it took. `positions`: of the state, framing included."""

    artifact: str
    positions: int
    size_bytes: int
    seconds: float


def largest_segment(model: FrozenModel) -> int:
    """The most tokens of text that a segment may hold: the window less framing, question and answer."""
    spare = 16  # tokens of neighbouring units may part differently where the units meet
    return model.window - prompt.framing_tokens(model.tokenizer) - QUESTION_ROOM - ANSWER_ROOM - spare


def deposit(
    model: FrozenModel,
    library: Library,
    book: str,
    row: tables.Segment,
    *,
    cancelled: threading.Event | None = None,
    replaces: str | None = None,
) -> Deposited:
    """Prefill, capture, certify and publish one segment; its row is left as it was.

    `replaces`: an artifact of this very segment that may not come back; the new one names it as its parent. Raises
    `ContextOverflow`, `Cancelled`, `StorageFull`.
    """
    started = time.perf_counter()
    ids = prompt.segment_ids(model.tokenizer, row.text)
    probe = prompt.probe_ids(model.tokenizer)
    if len(ids) + QUESTION_ROOM + ANSWER_ROOM > model.window:
        raise ContextOverflow(
            f"segment {row.ordinal} takes {len(ids)} positions of the window of {model.window}: choose fewer tokens a "
            "segment"
        )
    with model.lock:
        cache = new_cache(model.config, room=len(ids) + len(probe) + PROBE_TOKENS)
        prefill(model, cache, ids, cancelled)
        state = capture(cache, length=len(ids))
        certificate = follow_cue(model, cache, probe, limit=PROBE_TOKENS).certificate()
    del cache
    written = _manifest(model, book, row, ids, state, certificate, replaces)
    encoded = encode(written, state_tensors(state))
    seconds = time.perf_counter() - started
    return _publish(library, row, written, encoded, seconds, model)


def _publish(
    library: Library, row: tables.Segment, written: m.Manifest, encoded: Encoded, seconds: float, model: FrozenModel
) -> Deposited:
    record = tables.Artifact(
        digest=str(encoded.digest),
        kind="segment",
        problem_text=row.text,
        canonical_key=str(digest_bytes(row.text.encode())),  # a text is no problem: it is looked up by its bytes
        canonical_version=CANONICAL_VERSION,
        answer="",
        model=model.name,
        identity=written.identity.digest,
        environment=written.environment.digest,
        size_bytes=encoded.size,
        stored_bytes=encoded.size,
        graft_point=written.graft_point,
        solve_tokens=0,
        solve_seconds=seconds,
        parent=written.parent,
        created="",
    )
    kept = library.publish(None, encoded, record)
    _keep_manifest(library, kept.digest, written)
    return Deposited(kept.digest, written.graft_point, encoded.size, seconds)


def open_segment(model: FrozenModel, library: Library, row: tables.Segment) -> Opened:
    """The segment's verified artifact, rebuilt first if its bytes were dropped.

    Raises `Conflict` if it may not be used, `IdentityMismatch` if it is not the state of this text under this model,
    `CorruptError` (the artifact is quarantined then).
    """
    if row.artifact is None:
        raise Conflict(f"segment {row.ordinal} has no state yet: finish the ingest")
    record = library.artifact(row.artifact)
    if record.state == "evicted":
        record = restore_bytes(model, library, row)
    if record.state != "published":
        raise Conflict(f"the state of segment {row.ordinal} is {record.state}: {record.state_reason}")
    opened = open_artifact(library, model, record)
    if tuple(prompt.segment_ids(model.tokenizer, row.text)) != opened.manifest.prompt_ids:
        raise IdentityMismatch({"tokens": ("the state's prompt tokens", "those of the segment's text")})
    return opened


def restore_bytes(model: FrozenModel, library: Library, row: tables.Segment) -> tables.Artifact:
    """Rebuild a dropped segment by replay and publish it again, if its very bytes come out.

    Raises `Conflict` if they do not (another environment rounds differently), with the way out.
    """
    assert row.artifact is not None
    written = library.kept_manifest(row.artifact)
    if written is None:
        raise Conflict(f"segment {row.ordinal} was dropped and its manifest is not kept: ingest the book again")
    state = rebuild(model, written)
    tensors = state_tensors(state)
    found = tensor_digests(tensors)
    if found != written.tensors:
        odd = sum(found[name] != digest for name, digest in written.tensors.items())
        raise Conflict(
            f"segment {row.ordinal} was dropped and cannot be rebuilt here: {odd} of {len(found)} tensors differ; "
            "ingest the book again, or rebuild it in the environment of its deposit"
        )
    encoded = encode(written, tensors)
    if str(encoded.digest) != row.artifact:
        raise Conflict(f"segment {row.ordinal} rebuilds to {encoded.digest}, its record says {row.artifact}")
    return library.publish(None, encoded, library.artifact(row.artifact))


def exactness(model: FrozenModel, opened: Opened) -> Exactness:
    """Graft the segment and run its certificate's probe: was the continuation that of the deposit, bit for bit?"""
    certificate = opened.manifest.certificate
    assert certificate is not None  # every segment is deposited with one
    limit = len(certificate.answer_ids)
    with model.lock:
        cache = grafted(model, opened, room=len(certificate.cue_ids) + limit)
        return compare(certificate, follow_cue(model, cache, certificate.cue_ids, limit=limit))


def _manifest(
    model: FrozenModel,
    book: str,
    row: tables.Segment,
    ids: Sequence[int],
    state: State,
    certificate: m.Certificate,
    replaces: str | None,
) -> m.Manifest:
    source = m.Source(
        book=book,
        file=row.file,
        file_digest=row.file_digest,
        start=row.start,
        end=row.end,
        order=row.ordinal,
    )
    return prefill_manifest(
        model,
        state,
        ids,
        kind="segment",
        problem=row.text,
        max_tokens=PROBE_TOKENS,
        certificate=certificate,
        parent=replaces,
        source=source,
    )


def _keep_manifest(library: Library, digest: str, written: m.Manifest) -> None:
    """A few kilobytes beside a blob of megabytes: with them, and only with them, the blob may be dropped."""
    if library.kept_manifest(digest) is None:
        library.add_measurement(
            tables.Measurement(
                id="",
                artifact=digest,
                kind=KEPT_MANIFEST,
                environment=written.environment.digest,
                finding="kept",
                detail=m.encode_manifest(written).decode(),
                created="",
            )
        )
