"""Small libraries with plain bytes for states: a stand-in for encoded artifacts, used by unit tests only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from library.digest import Digest, digest_bytes, digest_json
from library.store import Library
from library.tables import Artifact, Attempt, Evidence

IDENTITY = "blake3:" + "1" * 64
ENVIRONMENT = "blake3:" + "2" * 64


@dataclass(frozen=True)
class Payload:
    """Bytes in two parts with their digest, shaped as `library.artifact.Encoded`."""

    data: bytes

    @property
    def digest(self) -> Digest:
        return digest_bytes(self.data)

    @property
    def size(self) -> int:
        return len(self.data)

    def parts(self) -> Iterator[memoryview]:
        half = len(self.data) // 2
        yield memoryview(self.data)[:half]
        yield memoryview(self.data)[half:]


def key_of(text: str) -> str:
    return str(digest_json(text))


def state_of(text: str, size: int = 300) -> Payload:
    """Bytes that depend on the text alone."""
    return Payload((digest_bytes(text.encode()).hex.encode() * (size // 64 + 1))[:size])


def record_of(text: str, *, answer: str = "42", **columns: object) -> Artifact:
    values: dict[str, object] = {
        "digest": "",
        "problem_text": text,
        "canonical_key": key_of(text),
        "canonical_version": 1,
        "answer": answer,
        "model": "test-model",
        "identity": IDENTITY,
        "environment": ENVIRONMENT,
        "verifier": "check 1",
        "reviewer": "ada",
        "size_bytes": 0,
        "stored_bytes": 0,
        "graft_point": 10,
        "solve_tokens": 100,
        "created": "",
    }
    return Artifact(**{**values, **columns})


def attempt_of(library: Library, text: str, staged: str | None = None, **columns: object) -> str:
    """A pending attempt on a problem, with one finding."""
    problem = library.add_problem(text, canonical_key=key_of(text), canonical_version=1, by="ada")
    values: dict[str, object] = {
        "id": "",
        "problem_id": problem,
        "model": "test-model",
        "identity": IDENTITY,
        "environment": ENVIRONMENT,
        "answer": "42",
        "status": "solved",
        "review": "pending",
        "staged": staged,
        "created": "",
        "created_by": "ada",
    }
    finding = Evidence(
        attempt_id="", check_name="agreement", outcome="pass", summary="3 of 3", verifier="check 1", created=""
    )
    return library.add_attempt(Attempt(**{**values, **columns}), [finding])


def approved(library: Library, text: str, size: int = 300) -> str:
    """An approved attempt whose state is staged but not published."""
    attempt = attempt_of(library, text, library.stage(state_of("staged " + text, size)))
    library.decide(attempt, version=1, reviewer="ada", action="approve")
    return attempt


def deposit(library: Library, text: str, size: int = 300, **columns: object) -> Artifact:
    """A published artifact, by the whole way: problem, attempt, approval, publication."""
    return library.publish(approved(library, text, size), state_of(text, size), record_of(text, **columns))
