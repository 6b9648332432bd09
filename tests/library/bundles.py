"""Bundles of small artifacts, in memory."""

from __future__ import annotations

import io
from typing import Any

from library.bundle import BundleEntry, write_bundle
from library.digest import digest_bytes
from library.records import AttemptRecord, BundleRecord, DecisionRecord, EvidenceRecord, ProblemRecord
from library.signing import SigningKey
from tests.library.artifacts import artifact_bytes

CREATED = "2026-01-02T00:00:00.000000Z"


def record(blob: bytes, number: int = 0) -> BundleRecord:
    return BundleRecord(
        digest=str(digest_bytes(blob)),
        model="tiny",
        verifier="v1",
        reviewer="ada",
        problem=ProblemRecord(id=f"p{number}", source="ä book", created=CREATED, created_by="ada"),
        attempt=AttemptRecord(
            id=f"a{number}",
            number=0,
            origin="solve",
            status="solved",
            version=2,
            created=CREATED,
            created_by="ada",
        ),
        evidence=(
            EvidenceRecord(
                check="reference", outcome="pass", summary="equal", detail="{}", verifier="v1", created=CREATED
            ),
        ),
        decisions=(
            DecisionRecord(
                id=f"d{number}", attempt_version=2, reviewer="ada", action="approve", reason="", created=CREATED
            ),
        ),
    )


def blobs(count: int) -> list[bytes]:
    return [artifact_bytes(scale=number + 1, answer=str(number)) for number in range(count)]


def entries(contents: list[bytes]) -> list[BundleEntry]:
    return [
        BundleEntry(record(blob, number), len(blob), lambda blob=blob: [blob[:100], memoryview(blob)[100:]])
        for number, blob in enumerate(contents)
    ]


def bundle(count: int = 2, signer: SigningKey | None = None, **changes: Any) -> bytes:
    target = io.BytesIO()
    write_bundle(target, changes.get("entries", entries(blobs(count))), created=CREATED, signer=signer)
    return target.getvalue()
