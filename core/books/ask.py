"""A question to a book: route, graft the likely segments one after another, let each answer, reconcile.

One segment's state is in memory at a time. The answer is new and no person has checked it; it names the segment and
the characters that it rests on. Knows books, models and the library; no page.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from core.books import prompt
from core.books.curate import answerable
from core.books.deposit import ANSWER_ROOM, QUESTION_ROOM, open_segment
from core.books.memory import give_back
from core.books.quoting import SegmentAnswer, judged, reconcile
from core.books.record import rows
from core.graft import grafted
from core.jobs import Context, Stream
from core.model import FrozenModel
from core.routing import Routed, route
from core.solve import prefill
from library import tables
from library.errors import Cancelled, Conflict, CorruptError, ModelError, NotFound, StoreError, UsageError
from library.store import Library

SEGMENTS = 3  # that a question is put to


@dataclass(frozen=True)
class BookAnswer:
    """`answer` is None when no segment knew. `source` is the one that it comes from, `agreeing` those that said the
    same. `attended_tokens`: the most that one answer attended to; `addressable_tokens`: all of the book's text."""

    book: str
    question: str
    answer: str | None
    source: SegmentAnswer | None
    agreeing: tuple[int, ...]
    answers: tuple[SegmentAnswer, ...]
    reasons: tuple[str, ...]
    addressable_tokens: int
    attended_tokens: int
    segments: int
    routing_seconds: float
    first_token_seconds: float
    seconds: float
    outcome_id: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Question:
    """`segments` are asked; `neighbours` on either side of the best only if none of those knows."""

    book: str
    text: str
    by: str
    segments: int = SEGMENTS
    neighbours: int = 1
    max_tokens: int = 48
    any_state: bool = False  # experiments ask books that no person has accepted


def ask_book(model: FrozenModel, library: Library, question: Question, context: Context) -> BookAnswer:
    """Answer a question from an accepted book; the outcome is recorded.

    A damaged, revoked or foreign segment becomes a reason and is passed over. Raises `Conflict` for a book that no
    person has accepted, `UsageError` for an empty or overlong question, `NotFound`, `Cancelled`.
    """
    started = time.perf_counter()
    book = library.book(question.book)
    answerable(book, also=("pending",) if question.any_state else ())
    ids = _question_ids(model, question)
    context.report(phase="routing")
    counted = _Counted(library, book.id)
    routed = route(question.text, counted, question.segments, neighbours=question.neighbours)
    routing = time.perf_counter() - started
    answers: list[SegmentAnswer] = []
    reasons: list[str] = []
    first = 0.0
    queue = [(hit.place, hit.score) for hit in routed.hits]
    spare = [(place, 0.0) for place in routed.neighbours]
    while queue:
        place, score = queue.pop(0)
        context.check()
        begun = time.perf_counter() - started
        said = _put(model, library, book.id, place, ids, question, routed, context)
        give_back()
        said = replace(said, score=score)
        if said.decode_tokens and not first:
            first = begun + said.first_token_seconds
        answers.append(said)
        _show(context, answers)
        if not queue and spare and not any(answer.known for answer in answers):
            queue, spare = spare, []
    best, agreeing = reconcile(answers)
    if not answers:
        reasons.append("no segment has any of the question's words")
    elif best is None:
        reasons.append(f"none of the {len(answers)} segments that were asked holds the answer")
    reasons += [f"segment {said.ordinal}: {said.note}" for said in answers if said.note]
    found = BookAnswer(
        book=book.name,
        question=question.text,
        answer=best.text if best else None,
        source=best,
        agreeing=tuple(said.ordinal for said in agreeing),
        answers=tuple(answers),
        reasons=tuple(reasons),
        addressable_tokens=counted.tokens,
        attended_tokens=max((said.attended_tokens for said in answers), default=0),
        segments=routed.texts,
        routing_seconds=routing,
        first_token_seconds=first,
        seconds=time.perf_counter() - started,
    )
    return replace(found, outcome_id=_record(model, library, found, question.by))


class _Counted:
    """The book's texts, one page in memory at a time; counts the tokens that went by."""

    def __init__(self, library: Library, book_id: str) -> None:
        self._library, self._book_id, self.tokens = library, book_id, 0

    def __iter__(self) -> Iterator[str]:
        self.tokens = 0
        for row in rows(self._library, self._book_id):
            self.tokens += row.tokens
            yield row.text


def _question_ids(model: FrozenModel, question: Question) -> list[int]:
    if not question.text.strip():
        raise UsageError("the question is empty: write it out")
    if not 1 <= question.segments <= 64 or not 0 <= question.neighbours <= 8:
        raise UsageError("a question is put to 1 to 64 segments, with 0 to 8 neighbours")
    if not 1 <= question.max_tokens <= ANSWER_ROOM:
        raise UsageError(f"an answer has 1 to {ANSWER_ROOM} tokens, not {question.max_tokens}")
    ids = prompt.question_ids(model.tokenizer, question.text.strip())
    if len(ids) > QUESTION_ROOM:
        raise UsageError(f"the question takes {len(ids)} tokens, there is room for {QUESTION_ROOM}: shorten it")
    return ids


def _put(
    model: FrozenModel,
    library: Library,
    book_id: str,
    place: int,
    ids: Sequence[int],
    question: Question,
    routed: Routed,
    context: Context,
) -> SegmentAnswer:
    """Put the question to one segment. Its faults become its note."""
    (row,) = library.segments(book_id, limit=1, offset=place)
    begun = time.perf_counter()
    blank = SegmentAnswer(row.ordinal, row.id, row.artifact, row.file, row.start, row.end, "", known=False, note="")
    try:
        with model.lock:
            opened = open_segment(model, library, row)
            point = opened.manifest.graft_point
            cache = grafted(model, opened, room=len(ids) + question.max_tokens)
            del opened  # the file's bytes: from here on only the cache holds the state
            decoded, logprob, first = _decode(model, cache, ids, question.max_tokens, begun, context)
    except (CorruptError, ModelError, StoreError, NotFound, Conflict) as fault:
        return replace(blank, note=f"{type(fault).__name__}: {fault}")
    said = replace(
        blank,
        text=prompt.tidy(model.tokenizer, decoded, base=not model.tokenizer.chat_template),
        logprob=logprob,
        attended_tokens=point + len(ids) + len(decoded),
        prefill_tokens=len(ids),
        decode_tokens=len(decoded),
        first_token_seconds=first,
        seconds=time.perf_counter() - begun,
    )
    return judged(said, question.text, row.text, routed.weights)


@torch.inference_mode()
def _decode(
    model: FrozenModel, cache: Any, ids: Sequence[int], budget: int, begun: float, context: Context
) -> tuple[list[int], float, float]:
    """Greedy tokens after the question, their mean log-probability, seconds to the first. Mutates `cache`."""
    logits = prefill(model, cache, ids, context.cancelled)
    found: list[int] = []
    total, first = 0.0, 0.0
    base = not model.tokenizer.chat_template
    while True:
        likely = logits.float().log_softmax(-1)
        token = int(likely.argmax(dim=-1).item())
        total += float(likely[0, token])
        first = first or time.perf_counter() - begun
        if token in model.stop_ids:
            return found, total / (len(found) + 1), first
        found.append(token)
        over = base and "\n" in model.decode(found).lstrip()
        if len(found) >= budget or over:
            return found, total / len(found), first
        if context.cancelled.is_set():
            raise Cancelled("stopped on request")
        logits = model.forward(torch.tensor([[token]], dtype=torch.long, device=model.device), cache)


def _show(context: Context, answers: Sequence[SegmentAnswer]) -> None:
    streams = tuple(
        Stream(
            f"segment {said.ordinal}: {said.file} {said.start} to {said.end}",
            text=said.text,
            tokens=said.decode_tokens,
            state="stop" if said.decode_tokens else "failed",
            answer=said.text if said.known else None,
            seconds=said.seconds,
            prefill_tokens=said.prefill_tokens,
        )
        for said in answers
    )
    context.report(phase="asking segments", streams=streams, tokens=sum(said.decode_tokens for said in answers))


def _record(model: FrozenModel, library: Library, found: BookAnswer, by: str) -> str:
    source = found.source
    reasons = [{"code": "book", "text": text} for text in found.reasons]
    if source is not None:
        where = f"{found.book}, segment {source.ordinal}, {source.file} {source.quote_start} to {source.quote_end}"
        reasons.insert(0, {"code": "source", "text": where})
    return library.record_outcome(
        tables.Outcome(
            id="",
            query=found.question,
            artifact=source.artifact if source else None,
            policy="book",
            # A segment's state is read, its answer is new and unverified: the definition of a transfer.
            verdict="TRANSFER" if source else "REFUSE",
            reasons=json.dumps(reasons, ensure_ascii=False),
            answer=found.answer,
            decode_tokens=sum(said.decode_tokens for said in found.answers),
            prefill_tokens=sum(said.prefill_tokens for said in found.answers),
            seconds=found.seconds,
            origin="book",
            model=model.name,
            identity=model.identity.digest,
            created="",
            created_by=by,
        )
    )
