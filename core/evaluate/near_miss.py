"""The experiment of near-misses: what a library answers to texts that resemble a stored problem but are another.

Solves each base, deposits what is right, then answers each variant fresh, from the state without a gate, from the
state with one, and by the two honest baselines. The counting is in near_miss_report.py.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from core.equivalence import equal
from core.evaluate import once
from core.evaluate.batched import Written, complete, write
from core.evaluate.pairs import Pair
from core.evaluate.report import Journal
from core.gate import Policy, Verdict, judge
from core.graft import ANSWER_TOKENS, grafted, replay
from core.model import FrozenModel
from core.opening import open_artifact
from core.profiles import cue_ids, encode_plain
from core.solve import Plan
from library.artifact import Artifact as Opened
from library.digest import digest_bytes
from library.errors import UsageError
from library.store import Library

USABLE = frozenset({"positive", "negative"})  # the other roles have labels that cannot be counted
NO_ANSWER = frozenset({"None", "none"})  # how pair files write that a variant has no answer
Say = Callable[[str], None]


@dataclass(frozen=True)
class Experiment:
    """How to run it. `wave`: variants gathered before they are answered as one batch."""

    plan: Plan
    policy: Policy = Policy.EDITS
    wave: int = 8


def select(pairs: Iterable[Pair], *, limit: int | None = None, datasets: Sequence[str] = ()) -> list[Pair]:
    """The first `limit` pairs that are labelled restatement or near-miss and have a base answer, in order."""
    chosen: list[Pair] = []
    for pair in pairs:
        if limit is not None and len(chosen) >= limit:
            break
        wanted = not datasets or pair.dataset in datasets
        if wanted and not pair.malformed and pair.role in USABLE and pair.base_answer.strip():
            chosen.append(pair)
    return chosen


def run(
    model: FrozenModel,
    pairs: Sequence[Pair],
    experiment: Experiment,
    state: Path,
    *,
    source_digest: str,
    say: Say = lambda text: None,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Run or continue; (rows of the bases, rows of the variants of solved bases). `state` holds journal and library.

    Raises `UsageError` for policy `off`, which is no gate, and for a `state` of other settings.
    """
    if experiment.policy is Policy.OFF:
        raise UsageError("the policy off is no gate: the ungated arms are always measured; give strict or edits")
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(pair.base, []).append(pair)
    header = {
        "experiment": "near-miss",
        "identity": model.identity.digest,
        "environment": model.environment.digest,
        "settings": {**asdict(experiment), "policy": str(experiment.policy)},
        "pairs": source_digest,
    }
    with Journal(state / "near-miss.jsonl", header) as journal:
        with Library.open(state / "library", actor=once.RULE) as library:
            runner = _Runner(model, library, journal, experiment, say)
            for number, (base, group) in enumerate(groups.items(), start=1):
                runner.base(base, group)
                say(f"base {number} of {len(groups)}: {runner.words()}")
            runner.flush()
        bases = [journal.rows[base_key(base)] for base in groups]
        variants = [journal.rows[key] for pair in pairs if (key := variant_key(pair)) in journal]
    return bases, variants


def base_key(base: str) -> str:
    return f"base:{digest_bytes(base.encode('utf-8', 'surrogatepass'))}"


def variant_key(pair: Pair) -> str:
    return f"variant:{pair.index}"


@dataclass(frozen=True)
class _Waiting:
    """A variant of a solved base that is still to be answered."""

    pair: Pair
    base: dict[str, Any]
    opened: Opened


class _Runner:
    def __init__(
        self, model: FrozenModel, library: Library, journal: Journal, experiment: Experiment, say: Say
    ) -> None:
        self.model, self.library, self.journal, self.experiment, self.say = model, library, journal, experiment, say
        self.waiting: list[_Waiting] = []
        self.solved = self.answered = 0
        self._equal: dict[tuple[str, str], bool] = {}

    def words(self) -> str:
        return f"{self.solved} solved, {self.answered} variants answered, {len(self.waiting)} waiting"

    def base(self, base: str, group: Sequence[Pair]) -> None:
        row = self.journal.get(base_key(base)) or self._solve(base, group[0])
        if row["artifact"] is None:
            return
        self.solved += 1
        todo = [pair for pair in group if variant_key(pair) not in self.journal]
        self.answered += len(group) - len(todo)
        if todo:
            opened = open_artifact(self.library, self.model, self.library.artifact(row["artifact"]))
            self.waiting += [_Waiting(pair, row, opened) for pair in todo]
        if len(self.waiting) >= self.experiment.wave:
            self.flush()

    def _solve(self, base: str, pair: Pair) -> dict[str, Any]:
        found = once.solve_once(self.model, self.library, base, pair.base_answer, self.experiment.plan)
        row: dict[str, Any] = {
            "base_id": pair.base_id,
            "dataset": pair.dataset,
            "gold": pair.base_answer,
            "artifact": None,
            "why": found.why,
            "attempts": len(found.solved.attempts),
            "tokens": found.solved.decode_tokens,
            "seconds": found.solved.seconds,
        }
        if found.artifact is not None:
            opened = open_artifact(self.library, self.model, self.library.artifact(found.artifact.digest))
            with self.model.lock:
                again = replay(self.model, opened)
            row |= {
                "artifact": found.artifact.digest,
                "stored": found.artifact.answer,
                "replay": {
                    "answer": again.continuation.answer,
                    "tokens": len(again.continuation.ids),
                    "prefill": len(again.continuation.cue_ids),
                    "exactness": str(again.exactness),
                },
            }
        return self.journal.add(base_key(base), row)

    def flush(self) -> None:
        """Answer the waiting variants in all arms and keep them."""
        if not self.waiting:
            return
        model, plan, width = self.model, self.experiment.plan, self.experiment.plan.batch
        waiting, self.waiting = self.waiting, []
        prompts = [model.prompt_ids(item.pair.variant) for item in waiting]
        fresh = write(model, prompts, plan.max_tokens, batch=width)
        prefixed = [_text_prefix(model, item) for item in waiting]
        texts = write(model, prefixed, plan.max_tokens, batch=width)
        asked, transferred = self._from_states(waiting)
        for place, item in enumerate(waiting):
            arms = {
                "fresh": self._arm(item, fresh[place], len(prompts[place])),
                "replay": self._replayed(item),
                "asked": self._arm(item, *asked[place]),
                "text_prefix": self._arm(item, texts[place], len(prefixed[place])),
            }
            self._keep(item, arms, transferred.get(place))
        self.answered += len(waiting)

    def _from_states(
        self, waiting: Sequence[_Waiting]
    ) -> tuple[dict[int, tuple[Written, int]], dict[int, tuple[Written, int]]]:
        """The two arms that go on from a base's state, with their prefill: asked with the cue, and transfers."""
        model, plan = self.model, self.experiment.plan
        asked: dict[int, tuple[Written, int]] = {}
        transferred: dict[int, tuple[Written, int]] = {}
        by_base: dict[str, list[int]] = {}
        for place, item in enumerate(waiting):
            by_base.setdefault(item.base["artifact"], []).append(place)
        cue = cue_ids(model.tokenizer, model.profile.cues[0].lstrip())
        for places in by_base.values():
            turns = {place: _turn(model, waiting[place].pair.variant) for place in places}
            room = max(len(turn) for turn in turns.values()) + max(plan.max_tokens, len(cue) + ANSWER_TOKENS)
            cache = grafted(model, waiting[places[0]].opened, room=room)
            cued = [turns[place] + cue for place in places]
            for place, ids, written in zip(
                places, cued, complete(model, cued, batch=plan.batch, cache=cache), strict=True
            ):
                asked[place] = (written, len(ids))
            kin = [place for place in places if self._verdict(waiting[place]).verdict is Verdict.TRANSFER]
            examples = write(model, [turns[p] for p in kin], plan.max_tokens, batch=plan.batch, cache=cache)
            for place, written in zip(kin, examples, strict=True):
                transferred[place] = (written, len(turns[place]))
        return asked, transferred

    def _verdict(self, item: _Waiting) -> Any:
        return judge(item.pair.base, item.pair.variant, self.experiment.policy)

    def _keep(self, item: _Waiting, arms: dict[str, Any], transferred: tuple[Written, int] | None) -> None:
        judgement = self._verdict(item)
        if judgement.verdict is Verdict.GRAFT:
            arms["gated"] = arms["replay"]
        elif transferred is not None:
            arms["gated"] = self._arm(item, *transferred)
        else:
            arms["gated"] = arms["fresh"]
        pair = item.pair
        row = {
            "base_id": pair.base_id,
            "index": pair.index,
            "dataset": pair.dataset,
            "kind": pair.kind,
            "role": pair.role,
            "stored": item.base["stored"],
            "expected": pair.variant_answer,
            "verdict": str(judgement.verdict),
            "reasons": [reason.code for reason in judgement.reasons],
            "similarity": similarity(pair.base, pair.variant),
            "arms": arms,
        }
        self.journal.add(variant_key(pair), row)

    def _replayed(self, item: _Waiting) -> dict[str, Any]:
        """The replay never sees the query, so one run of it serves every variant."""
        again = item.base["replay"]
        return self._measured(item, again["answer"], again["tokens"], again["prefill"])

    def _arm(self, item: _Waiting, written: Written, prefill: int) -> dict[str, Any]:
        return self._measured(item, written.answer, written.tokens, prefill)

    def _measured(self, item: _Waiting, answer: str | None, tokens: int, prefill: int) -> dict[str, Any]:
        return {
            "answer": answer,
            "right": self._right(item.pair.variant_answer, answer),
            "stored_answer": answer is not None and self._same(item.base["stored"], answer),
            "tokens": tokens,
            "prefill": prefill,
        }

    def _right(self, expected: str, answer: str | None) -> bool | None:
        """None where the pair file does not say what would be right; "None" asks for no answer at all."""
        if not expected.strip():
            return None
        if expected.strip() in NO_ANSWER:
            return answer is None
        return answer is not None and self._same(expected, answer)

    def _same(self, gold: str, answer: str) -> bool:
        key = (gold, answer)
        if key not in self._equal:
            self._equal[key] = equal(gold, answer).is_equal
        return self._equal[key]


def _turn(model: FrozenModel, query: str) -> list[int]:
    return model.next_turn_ids(model.profile.instruction.format(problem=query))


def _text_prefix(model: FrozenModel, item: _Waiting) -> list[int]:
    """The stored problem and its solution as text, all of it prefilled again, then the query as a new turn."""
    written = item.opened.manifest
    solution = encode_plain(model.tokenizer, model.decode(written.attempt_ids))
    return [*model.prompt_ids(written.problem), *solution, *_turn(model, item.pair.variant)]


def similarity(first: str, second: str) -> float:
    """Cosine of two texts' word counts: what a plain cache without a model of its own can look up by."""
    a, b = (Counter(re.findall(r"\w+", text.lower())) for text in (first, second))
    dot = sum(count * b[word] for word, count in a.items())
    size = math.sqrt(sum(c * c for c in a.values()) * sum(c * c for c in b.values()))
    return dot / size if size else 0.0
