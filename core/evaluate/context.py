"""The experiment on books: does a text of many windows answer, in the memory of one, byte for byte?

Hides facts in a long text, makes a book of it, grafts every segment and compares its certificate, asks for the facts,
and asks a model that sees only the end of the text. The library is the experiment's own; a run that was stopped goes
on in the same folder. Knows the use cases, not the command line.
"""

from __future__ import annotations

import copy
import functools
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from core.books import prompt
from core.books.ask import BookAnswer, Question, ask_book
from core.books.curate import describe
from core.books.deposit import exactness, largest_segment, open_segment
from core.books.ingest import ingest
from core.books.memory import give_back
from core.books.record import rows
from core.books.split import split
from core.cache import new_cache
from core.evaluate.context_report import recall, timing
from core.evaluate.haystack import Needle, needles, write_haystack
from core.evaluate.memory import Peak
from core.evaluate.report import Journal
from core.graft import Exactness
from core.jobs import Context, Progress
from core.model import FrozenModel
from core.profiles import encode_plain
from core.solve import prefill
from library.errors import Conflict, CorruptError, ModelError
from library.store import Library

Say = Callable[[str], None]
ANSWER_TOKENS = 32


@dataclass(frozen=True)
class Setup:
    """`segments`: that a question is put to. `synthetic`: a random model, whose answers mean nothing."""

    tokens: int
    segment_tokens: int
    needles: int = 12
    segments: int = 3
    seed: int = 0
    synthetic: bool = False
    baseline: bool = True

    @property
    def name(self) -> str:
        return f"{self.tokens}-{self.segment_tokens}-{self.needles}-{self.seed}"


def run(model: FrozenModel, setup: Setup, folder: Path, *, say: Say = lambda text: None) -> dict[str, Any]:
    """The report. `folder` keeps source, library and progress; the library's states are what takes the room."""
    folder.mkdir(parents=True, exist_ok=True)
    hidden = needles(setup.needles, setup.seed)
    source = folder / f"{setup.name}.txt"
    # The environment too: states of another one continue otherwise, which would count as mismatches here.
    header = {"setup": asdict(setup), "identity": model.identity.digest, "environment": model.environment.digest}
    with (
        Library.open(folder / "library", actor="experiment") as library,
        Journal(folder / f"{setup.name}.jsonl", header) as journal,
    ):
        if not source.exists():
            partial = source.with_suffix(".part")
            written = write_haystack(partial, setup.tokens, hidden, lambda text: _count(model, text), setup.seed)
            partial.rename(source)
            say(f"wrote a text of {written} tokens")
        peak = Peak(model.device)
        one = _one_window(model, library, setup, source, peak, say)
        resting = peak.restart()
        made = ingest(model, library, source, setup.name, _context(say), setup.segment_tokens)
        ingest_peak = peak.read()
        say(f"{made.segments} segments, {made.built} built in {made.seconds:.0f} s")
        peak.restart()
        mismatches, checked = _verify(model, library, setup.name, say)
        verify_peak = peak.read()
        peak.restart()
        asked = [_ask(model, library, setup, needle, number, journal, say) for number, needle in enumerate(hidden)]
        ask_peak = peak.read()
        cut = []
        if setup.baseline and not setup.synthetic:
            cut = _truncated(model, library, setup, hidden, journal, say)
        view = describe(library, setup.name)
    peaks = {"one_window": one, "ingest": ingest_peak, "verify": verify_peak, "ask": ask_peak, "resting": resting}
    worst = max(ingest_peak, verify_peak, ask_peak)
    return {
        "model": model.name,
        "machine": {**model.environment.fields, "dtype": str(model.dtype).removeprefix("torch.")},
        "setup": asdict(setup),
        "window": model.window,
        "addressable_tokens": view.addressable_tokens,
        "attended_tokens": max((row["attended"] for row in asked), default=view.attended_tokens),
        "segments": view.segments,
        "segments_checked": checked,
        "digest_mismatches": len(mismatches),
        "mismatches": mismatches[:20],
        "book_digest": made.digest,
        "bytes_per_token": view.bytes_per_token,
        "stored_bytes": view.stored_bytes,
        "memory_method": peak.method,
        "peak_bytes": peaks,
        "peak_memory_ratio": worst / one,
        # of what the work took on top of the loaded model: the harder measure
        "peak_memory_ratio_net": (worst - resting) / max(1, one - resting),
        **timing(made, asked),
        **recall(asked, cut, meaningful=not setup.synthetic),
        "needles": asked,
    }


def _one_window(model: FrozenModel, library: Library, setup: Setup, source: Path, peak: Peak, say: Say) -> int:
    """Peak bytes of a book that is the largest segment of `source` alone: made, grafted and asked.

    Twice, and the second time counts: the first warms up what torch and SQLite keep.
    """
    text = source.read_text(encoding="utf-8")
    count = functools.partial(_count, model)
    largest = max(split(text, setup.segment_tokens, count), key=lambda piece: piece.tokens)
    text = text[largest.start : largest.end]
    highest = 0
    for number in range(2):
        name = f"window-{setup.name}-{number}-{time.time_ns()}"
        alone = source.with_name(f"{name}.txt")
        try:
            alone.write_text(text, encoding="utf-8")
            peak.restart()
            ingest(model, library, alone, name, _context(), setup.segment_tokens)
            for row in rows(library, library.book(name).id):
                exactness(model, open_segment(model, library, row))
            asked = Question(name, text[:80], "experiment", max_tokens=ANSWER_TOKENS, any_state=True)
            ask_book(model, library, asked, _context())
            highest = peak.read()
        finally:
            alone.unlink(missing_ok=True)
    say(f"one window of {largest.tokens} tokens takes {highest / 2**20:.0f} MiB at its peak")
    return highest


def _verify(model: FrozenModel, library: Library, name: str, say: Say) -> tuple[list[str], int]:
    """Graft every segment: its bytes must have their digest and its continuation the deposit's, bit for bit."""
    wrong: list[str] = []
    checked = 0
    last = time.perf_counter()
    for row in rows(library, library.book(name).id):
        checked += 1
        try:
            found = exactness(model, open_segment(model, library, row))
            if found is not Exactness.EXACT:
                wrong.append(f"segment {row.ordinal}: {found}")
            give_back()
        except (CorruptError, ModelError, Conflict) as fault:
            wrong.append(f"segment {row.ordinal}: {type(fault).__name__}: {fault}")
        if time.perf_counter() - last > 20:
            last = time.perf_counter()
            say(f"{checked} segments grafted, {len(wrong)} mismatches")
    say(f"{checked} segments grafted, {len(wrong)} mismatches")
    return wrong, checked


def _question(name: str, needle: Needle, setup: Setup) -> Question:
    return Question(
        name, needle.question, "experiment", segments=setup.segments, max_tokens=ANSWER_TOKENS, any_state=True
    )


def _ask(
    model: FrozenModel, library: Library, setup: Setup, needle: Needle, number: int, journal: Journal, say: Say
) -> dict[str, Any]:
    if (kept := journal.get(f"ask {number}")) is not None:
        return kept
    found = ask_book(model, library, _question(setup.name, needle, setup), _context())
    home = next(
        (row.ordinal for row in rows(library, library.book(setup.name).id) if needle.sentence in row.text), None
    )
    row = _row(needle, home, found)
    told = "right" if row["right"] else "wrong" if found.answer else "no answer"
    say(f"needle {number} at depth {needle.depth:.2f}: {'' if row['routed'] else 'not routed, '}{told}")
    return journal.add(f"ask {number}", row)


def _row(needle: Needle, home: int | None, found: BookAnswer) -> dict[str, Any]:
    there = next((said for said in found.answers if said.ordinal == home), None)
    return {
        "depth": needle.depth,
        "question": needle.question,
        "value": needle.value,
        "answer": found.answer,
        "right": found.answer is not None and needle.value in found.answer,
        "routed": there is not None,
        "segment": home,
        "segment_said": there.text if there else None,
        "segment_right": there is not None and needle.value in there.text,
        "asked": [said.ordinal for said in found.answers],
        "attended": found.attended_tokens,
        "routing_seconds": found.routing_seconds,
        "first_token_seconds": found.first_token_seconds,
        "seconds": found.seconds,
    }


def _truncated(
    model: FrozenModel, library: Library, setup: Setup, hidden: list[Needle], journal: Journal, say: Say
) -> list[dict[str, Any]]:
    """The same questions to a model that sees only the end of the text, as much as its window holds."""
    if all(f"cut {number}" in journal for number in range(len(hidden))):
        return [journal.rows[f"cut {number}"] for number in range(len(hidden))]
    kept: list[str] = []
    room = largest_segment(model)
    for row in rows(library, library.book(setup.name).id):
        kept.append(row.text)
        while sum(_count(model, text) + 2 for text in kept) > room:
            kept.pop(0)
    text = "\n\n".join(kept)
    ids = prompt.segment_ids(model.tokenizer, text)
    say(f"the truncating baseline sees {len(ids)} positions")
    began = time.perf_counter()
    cache = new_cache(model.config, room=len(ids) + 400)
    prefill(model, cache, ids)
    prefilled = time.perf_counter() - began
    found = []
    for number, needle in enumerate(hidden):
        said = _continue(model, copy.deepcopy(cache), needle.question)
        answered = {
            "depth": needle.depth,
            "answer": said,
            "right": needle.value in said,
            "in_view": needle.sentence in text,
            "prefill_seconds": prefilled,
            "positions": len(ids),
        }
        found.append(journal.add(f"cut {number}", answered))
    return found


@torch.inference_mode()
def _continue(model: FrozenModel, cache: Any, question: str) -> str:
    """Greedy answer. Mutates `cache`."""
    logits = prefill(model, cache, prompt.question_ids(model.tokenizer, question))
    ids: list[int] = []
    while len(ids) < ANSWER_TOKENS and (token := int(logits.argmax(dim=-1).item())) not in model.stop_ids:
        ids.append(token)
        logits = model.forward(torch.tensor([[token]], dtype=torch.long, device=model.device), cache)
    return prompt.tidy(model.tokenizer, ids, base=not model.tokenizer.chat_template)


def _count(model: FrozenModel, text: str) -> int:
    return len(encode_plain(model.tokenizer, text))


def _context(say: Say | None = None) -> Context:
    """A job's context outside the queue; says how far it is every 20 seconds."""
    last = [time.perf_counter()]

    def told(progress: Progress) -> None:
        if say is not None and time.perf_counter() - last[0] > 20:
            last[0] = time.perf_counter()
            say(f"{progress.phase}, {progress.tokens} of {progress.budget} tokens")

    return Context("experiment", {}, "experiment", threading.Event(), on_progress=told)
