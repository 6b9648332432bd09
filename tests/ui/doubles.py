"""Doubles for tests of the page that need no model: the real engine, library and queue with a writer of prepared text
in place of the model, and a library filled with small made-up artifacts. Never used outside tests.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from core.books.record import book_digest, rows
from core.books.texts import texts
from core.engine import Engine
from core.gate import canonical_key
from core.jobs import Context, Stream, Worker
from core.settings import Settings
from library.artifact import encode
from library.digest import digest_bytes
from library.errors import NotFound
from library.manifest import Certificate
from library.store import Library
from library.tables import Artifact, Attempt, Book, Evidence, Outcome, Segment
from tests.library.artifacts import manifest, tensors
from tests.library.stores import IDENTITY, record_of, state_of

WORDS = "We start with 7 caps and add 2 more. So the total is \\(7 + 2 = 9\\). The answer is \\boxed{9}."
REVIEWER = "ada"


class WrittenEngine(Engine):
    """The real engine whose jobs write `words`, one every `pace` seconds, instead of running a model."""

    def __init__(self, settings: Settings, library: Library, *, pace: float = 0.02, words: str = WORDS) -> None:
        super().__init__(settings, library)
        self.pace, self.words = pace, words
        self.worker = Worker(
            library,
            {
                "solve": self._solve,
                "ask": self._ask,
                "compare": self._compare,
                "chat": self._chat,
                "verify": self._verify_job,
                "audit": self._audit,
                "certify": self._certify,
                **self.books.handlers,
                "ingest": self._ingest,
                "book": self._ask_book,
            },
        )

    def _write(self, context: Context, streams: Sequence[Stream], at: int, budget: int) -> Stream:
        stream, started = streams[at], time.monotonic()
        pieces = self.words.split(" ")
        for number in range(1, len(pieces) + 1):
            context.check()
            time.sleep(self.pace)
            passed = round(time.monotonic() - started, 3)
            text = " ".join(pieces[:number])
            stream = replace(stream, text=text, tokens=number, state="running", seconds=passed)
            context.report(
                phase="decoding",
                tokens=number,
                budget=budget,
                tokens_per_second=number / max(passed, 0.001),
                seconds=passed,
                streams=(*streams[:at], stream, *streams[at + 1 :]),
            )
        return replace(stream, state="stop", answer="9")

    def _solve(self, context: Context) -> Mapping[str, Any]:
        payload = context.payload
        streams = [Stream(f"attempt {n + 1}") for n in range(payload["attempts"])]
        for number in range(len(streams)):
            streams[number] = self._write(context, streams, number, payload["max_tokens"])
            context.report(streams=tuple(streams))
        made = add_attempt(
            self.library,
            payload["problem"],
            self.words,
            answer="9",
            reference=payload["reference"],
            job=context.job_id,
            by=context.owner,
        )
        return {"attempts": [made], "chosen": made, "answer": "9", "status": "solved"}

    def _ask(self, context: Context) -> Mapping[str, Any]:
        self._write(context, [Stream("answer")], 0, 64)
        return {
            "verdict": "GRAFT",
            "reasons": [{"code": "identical", "text": "the two texts print as the same problem"}],
            "answer": "9",
            "decode_tokens": 4,
            "prefill_tokens": 9,
            "seconds": 0.12,
            "exactness": "byte-exact",
            "tokens_saved": 44,
            "artifact": None,
            "text": "",
            "warnings": [],
        }

    def _compare(self, context: Context) -> Mapping[str, Any]:
        streams = [Stream("fresh"), Stream("ungated"), Stream("gated")]
        for number in range(3):
            streams[number] = self._write(context, streams, number, 192)
        base = {
            "answer": "9",
            "text": self.words,
            "prefill_tokens": 40,
            "seconds": 1.2,
            "joules": None,
            "exactness": "",
        }
        reason = {"code": "number", "text": "a number differs"}
        return {
            "stored": {},
            "judgement": {},
            "runs": {
                "fresh": {**base, "decode_tokens": 41, "verdict": "REFUSE", "reasons": [], "copied": False},
                "ungated": {**base, "decode_tokens": 4, "verdict": "GRAFT", "reasons": [], "copied": True},
                "gated": {**base, "decode_tokens": 41, "verdict": "REFUSE", "reasons": [reason], "copied": False},
            },
        }

    def _chat(self, context: Context) -> Mapping[str, Any]:
        self._write(context, [Stream("answer")], 0, 64)
        return {"text": self.words, "first_token_seconds": 0.03, "reprefill_seconds": 0.4}

    def _certify(self, context: Context) -> Mapping[str, Any]:
        return {"finding": "byte-exact", "answer": "9", "tokens": 4, "deposit_here": True}

    def _audit(self, context: Context) -> Mapping[str, Any]:
        return {"finding": "reproduced", "words": ""}

    def _ingest(self, context: Context) -> Mapping[str, Any]:
        """A segment a paragraph; a stopped one goes on where it was. Before the fourth it waits while there is a file
        `hold` beside the library, so that a test can look at it half done."""
        name, library = context.payload["book"], self.library
        try:
            book = library.book(name)
        except NotFound:
            book = library.book(library.add_book(empty_book(name, context.owner)))
        files = list(texts(Path(context.payload["source"])))
        pieces = [(file, part) for file in files for part in file.text.split("\n\n")]
        there = library.count_segments(book.id)
        for number, (file, part) in enumerate(pieces[there:], there):
            context.report(phase=f"segment {number + 1} of {len(pieces)}", tokens=number, budget=len(pieces))
            while number == 3 and (library.root.parent / "hold").exists() and not context.cancelled.is_set():
                time.sleep(0.02)
            context.check()
            add_segment(library, book, number, file.name, file.text, part)
        library.update_book(book.id, state="pending", digest=book_digest(library, book))
        return {"state": "pending", "segments": len(pieces), "built": len(pieces) - there, "addressable_tokens": 99,
                "seconds": 1.0}  # fmt: skip

    def _ask_book(self, context: Context) -> Mapping[str, Any]:
        """The first segment that holds the question's last word answers with its text; else none does."""
        book, question = self.library.book(context.payload["book"]), context.payload["question"]
        self._write(context, [Stream("segment 0")], 0, 48)
        word = question.rstrip("?").split()[-1]
        found = next((row for row in rows(self.library, book.id) if word in row.text), None)
        source = None
        if found is not None:
            source = {"ordinal": found.ordinal, "file": found.file, "start": found.start, "end": found.end,
                      "quote": found.text, "quote_start": found.start, "quote_end": found.end, "text": self.words,
                      "known": True, "note": ""}  # fmt: skip
        said = [source] if source else []
        return {"question": question, "answer": source and self.words, "source": source, "agreeing": [0] * len(said),
                "answers": said, "reasons": [] if source else ["no segment has the question's words"],
                "addressable_tokens": 999, "attended_tokens": 99, "first_token_seconds": 0.1,
                "seconds": 0.5}  # fmt: skip


def empty_book(name: str, by: str) -> Book:
    return Book(id="", name=name, model="smollm2-135m", identity=IDENTITY, segment_tokens=64, created="", created_by=by)


def add_segment(library: Library, book: Book, ordinal: int, file: str, text: str, part: str) -> None:
    """A row and, as its state, bytes that depend on its text alone."""
    kept = library.publish(None, state_of(part), record_of(part, kind="segment", graft_point=len(part.split()) + 9))
    start = text.index(part)
    row = Segment(
        id="", book_id=book.id, ordinal=ordinal, file=file, file_digest="", start=start, end=start + len(part),
        tokens=len(part.split()), text=part, artifact=kept.digest,
    )  # fmt: skip
    library.add_segments(book.id, [row])


def add_attempt(
    library: Library,
    problem: str,
    solution: str,
    *,
    answer: str,
    reference: str | None = None,
    job: str | None = None,
    by: str = "local",
) -> str:
    """A finished attempt with evidence and a small staged artifact, open for review; its id."""
    problem_id = library.add_problem(
        problem, canonical_key=canonical_key(problem), canonical_version=1, reference=reference, by=by
    )
    items = tensors(scale=3000)
    certificate = Certificate(
        cue_ids=(1, 2), answer_ids=(3,), step_digests=(str(digest_bytes(b"logits")),), answer=answer
    )
    written = manifest(items, problem=problem, solution=solution, answer=answer, certificate=certificate)
    attempt = Attempt(
        id="",
        problem_id=problem_id,
        job_id=job,
        model="smollm2-135m",
        identity=written.identity.digest,
        environment=written.environment.digest,
        solution=solution,
        answer=answer,
        status="solved",
        review="pending",
        prompt_tokens=58,
        decode_tokens=41,
        seconds=1.9,
        tokens_per_second=21.6,
        created="",
        created_by=by,
        staged=library.stage(encode(written, items)),
    )
    found: tuple[tuple[str, str, str, dict[str, object]], ...] = (
        ("reference", "pass", "equal to the reference answer", {"method": "exact", "gold": answer}),
        ("derived", "pass", "the answer is the last result of the reasoning", {}),
        ("agreement", "unknown", "one attempt only", {"attempts": 1}),
        ("truncation", "pass", "the model stopped by itself", {}),
        ("repetition", "not_applicable", "too short to loop", {}),
    )
    rows = [
        Evidence(
            attempt_id="",
            check_name=name,
            outcome=outcome,
            summary=summary,
            detail=json.dumps(detail),
            verifier="checks 1",
            created="",
        )
        for name, outcome, summary, detail in found
    ]
    return library.add_attempt(attempt, rows)


def fill(engine: Engine, problems: Sequence[tuple[str, str]], days: int = 12) -> None:
    """Some history: decided and open attempts, artifacts, outcomes over several days, labels."""
    library = engine.library
    for number, (text, answer) in enumerate(problems):
        attempt = add_attempt(library, text, WORDS, answer=answer, reference=answer)
        if number % 3 == 1:
            decided = engine.decide(attempt, version=1, reviewer=REVIEWER, action="approve")
            if not decided.settled:
                decided = engine.decide(attempt, version=2, reviewer="zoe", action="approve")
            assert decided.artifact is not None
            for day in range(days):
                verdict = "GRAFT" if (day + number) % 4 else "REFUSE"
                add_outcome(library, decided.artifact, text, days - day, verdict)
        elif number % 5 == 4:
            engine.decide(
                attempt, version=1, reviewer=REVIEWER, action="reject", reason="adds where it should subtract"
            )
    for number, label in enumerate(("safe", "unsafe", "unsafe", "unsure", "safe")):
        query = problems[number % len(problems)][0]
        engine.label(problems[0][0], query, label, by=REVIEWER)


def add_outcome(library: Library, artifact: Artifact, query: str, days_ago: int, verdict: str) -> None:
    created = (datetime.now(UTC) - timedelta(days=days_ago)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    graft = verdict == "GRAFT"
    library.record_outcome(
        Outcome(
            id="",
            query=query,
            artifact=artifact.digest,
            policy="strict",
            verdict=verdict,
            reasons="[]",
            answer="9",
            decode_tokens=4 if graft else 41,
            prefill_tokens=9,
            seconds=0.2 if graft else 2.0,
            tokens_saved=37 if graft else 0,
            seconds_saved=1.7 if graft else 0.0,
            exactness="byte-exact" if graft else "",
            model=artifact.model,
            identity=artifact.identity,
            created=created,
            created_by=REVIEWER,
        )
    )
