"""The experiment of recurrence: problems asked once and then again, without and with the library.

Each problem is solved greedily in one attempt (without), then by up to k attempts of which a right one is deposited by
rule, then asked again from the library. The library is the experiment's own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from core import asking, solving
from core.deposit import flops
from core.energy import measure, source
from core.equivalence import equal
from core.evaluate import once
from core.evaluate.report import Bars, Journal, Problem, share, write_amounts, write_bars
from core.gate import Policy, Verdict
from core.model import FrozenModel
from core.solve import Plan, solve
from library.store import Library

FLOPS_FORMULA = "2 P per token, and 4 layers heads head_dim positions for attention (core/energy.py)"
Say = Callable[[str], None]


@dataclass(frozen=True)
class Preset:
    """Settings of a known experiment, used where the command line gives no other."""

    model: str
    device: str
    dtype: str
    plan: Plan


# The sampling that the model's card recommends; top-k is not used. One 80 GB GPU holds the bf16 weights (24 GB) and
# the caches of four attempts at this budget.
PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "aime2025": Preset(
            "google/gemma-4-12B-it",
            "cuda",
            "bfloat16",
            Plan(max_tokens=16_384, temperature=1.0, top_p=0.95, attempts=8, batch=4),
        )
    }
)


@dataclass(frozen=True)
class Recurrence:
    """What the experiment found. `rows` are the journal's lines, one a problem, in the file's order."""

    model: str
    plan: Plan
    rows: tuple[dict[str, Any], ...]
    energy_source: str
    weights_before: str
    weights_after: str
    machine: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """The report. Tokens are decoded tokens; `ratio` is solve over replay, `ratio_greedy` one greedy run's.

        `replay_tokens` are those of one recurrence of every deposited problem, `solve_tokens` and `greedy_tokens`
        those of the same problems' first solve and greedy run. Joules are None where nothing meters them.
        """
        rows = self.rows
        kept = [row for row in rows if row["deposited"]]
        n = len(rows)
        without = share(sum(row["greedy"]["right"] for row in rows), n)
        served = share(sum(row["replay"]["right"] for row in kept), n)
        either = share(sum(_right_with(row) for row in rows), n)
        solve_tokens, greedy_tokens = _sum(kept, "solve", "tokens"), _sum(kept, "greedy", "tokens")
        replay_tokens = _sum(kept, "replay", "tokens")
        return {
            "experiment": "recurrence",
            "model": self.model,
            "plan": asdict(self.plan),
            "machine": dict(self.machine),
            "n": n,
            "deposited": len(kept),
            "accuracy_without": without.share,
            "accuracy_with": either.share,
            "accuracy_from_library": served.share,
            "intervals": {"without": without.to_json(), "with": either.to_json(), "from_library": served.to_json()},
            "solve_tokens": solve_tokens,
            "solve_tokens_all": _sum(rows, "solve", "tokens"),
            "greedy_tokens": greedy_tokens,
            "replay_tokens": replay_tokens,
            "ratio": solve_tokens / replay_tokens if replay_tokens else None,
            "ratio_greedy": greedy_tokens / replay_tokens if replay_tokens else None,
            "replay_exactness": _count(row["replay"]["exactness"] for row in kept),
            "not_deposited": _count(row["why"] for row in rows if not row["deposited"]),
            "energy": self._energy(kept),
            "seconds": sum(row[part]["seconds"] for row in rows for part in ("greedy", "solve", "replay") if row[part]),
            "seconds_greedy": _sum(kept, "greedy", "seconds"),
            "seconds_solve": _sum(kept, "solve", "seconds"),
            "seconds_replay": _sum(kept, "replay", "seconds"),
            "weights_digest_before": self.weights_before,
            "weights_digest_after": self.weights_after,
            "approved_by": once.RULE,
            "problems": list(rows),
        }

    def _energy(self, kept: list[dict[str, Any]]) -> dict[str, Any]:
        metered = all(row[part]["joules"] is not None for row in kept for part in ("greedy", "solve", "replay"))
        found: dict[str, Any] = {"source": self.energy_source}
        for part in ("greedy", "solve", "replay"):
            found[f"joules_{part}"] = _sum(kept, part, "joules") if metered and kept else None
            found[f"flops_{part}"] = _sum(kept, part, "flops")
        found["flops_are"] = f"an estimate, prefill included: {FLOPS_FORMULA}"
        return found


def run(
    model: FrozenModel,
    problems: Iterable[Problem],
    plan: Plan,
    state: Path,
    *,
    source_digest: str,
    say: Say = lambda text: None,
) -> Recurrence:
    """Run or continue the experiment; `state` holds its progress file and its library.

    `plan` is how the deposit is solved; the greedy run takes its token budget. `source_digest` names the problems file,
    so that a progress file is not continued with another. Raises what a solve or the library raises.
    """
    before = str(model.weights_digest())
    header = {
        "experiment": "recurrence",
        "identity": model.identity.digest,
        "environment": model.environment.digest,
        "plan": asdict(plan),
        "problems": source_digest,
    }
    rows: list[dict[str, Any]] = []
    library_path = state / "library"
    with Journal(state / "recurrence.jsonl", header) as journal, Library.open(library_path, actor=once.RULE) as library:
        for number, problem in enumerate(problems, start=1):
            key = f"{number}:{problem.id}"
            row = journal.get(key)
            if row is None:
                row = journal.add(key, _one(model, library, problem, plan))
            rows.append(row)
            say(_progress(number, rows))
    after = str(model.weights_digest())
    machine = {"cores": _cores(), **model.environment.fields, "dtype": str(model.dtype).removeprefix("torch.")}
    return Recurrence(model.name, plan, tuple(rows), source(model.device.type), before, after, machine)


def _one(model: FrozenModel, library: Library, problem: Problem, plan: Plan) -> dict[str, Any]:
    greedy = _greedy(model, problem, plan)
    deposited = once.solve_once(model, library, problem.question, problem.answer, plan)
    solved = deposited.solved
    row: dict[str, Any] = {
        "id": problem.id,
        "gold": problem.answer,
        "greedy": greedy,
        "solve": {
            "answer": solved.answer,
            "attempts": len(solved.attempts),
            "tokens": solved.decode_tokens,
            "prefill": solved.prefill_tokens,
            "seconds": solved.seconds,
            "joules": solved.joules,
            "flops": solved.flops,
        },
        "deposited": deposited.artifact is not None,
        "why": deposited.why,
        "replay": None,
    }
    if deposited.artifact is not None:
        request = asking.Request(problem.question, Policy.STRICT, None, once.RULE, origin=once.ORIGIN)
        result = asking.ask(model, library, request, once.context())
        row["replay"] = {
            "verdict": str(result.verdict),
            "answer": result.answer,
            "right": result.verdict is Verdict.GRAFT and _right(problem.answer, result.answer),
            "exactness": result.exactness,
            "tokens": result.decode_tokens,
            "prefill": result.prefill_tokens,
            "seconds": result.seconds,
            "joules": result.joules,
            "flops": result.flops,
            "artifact": deposited.artifact.digest,
        }
    return row


def _greedy(model: FrozenModel, problem: Problem, plan: Plan) -> dict[str, Any]:
    """One greedy attempt in a fresh context: what a user without a library has, each time anew."""
    started = time.perf_counter()
    task = solving.fresh_task(model, problem.question, Plan(max_tokens=plan.max_tokens))
    with measure(model.device.type) as reading, model.lock:
        attempt = solve(model, task.prompt_ids, task.plan)[0]
    tokens = len(task.prompt_ids) + attempt.decoded
    return {
        "answer": attempt.answer,
        "right": _right(problem.answer, attempt.answer),
        "finish": attempt.finish,
        "tokens": attempt.decoded,
        "prefill": len(task.prompt_ids),
        "seconds": time.perf_counter() - started,
        "joules": reading.energy.joules,
        "flops": flops(model, tokens, len(task.prompt_ids)),
    }


def _right(gold: str, answer: str | None) -> bool:
    return answer is not None and equal(gold, answer).is_equal


def _right_with(row: Mapping[str, Any]) -> bool:
    """With the library: the replayed answer, or the fresh greedy one where nothing was deposited."""
    return bool(row["replay"]["right"] if row["deposited"] else row["greedy"]["right"])


def _sum(rows: Iterable[Mapping[str, Any]], part: str, name: str) -> Any:
    return sum(row[part][name] for row in rows)


def _count(names: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return counts


def _cores() -> int:
    import os

    return os.cpu_count() or 1


def _progress(number: int, rows: list[dict[str, Any]]) -> str:
    last = rows[-1]
    greedy = sum(row["greedy"]["right"] for row in rows)
    kept = sum(row["deposited"] for row in rows)
    solved = f"{last['solve']['attempts']} attempts, {last['solve']['tokens']} tokens"
    return f"{number}: {last['id']}: {solved}; greedy right {greedy}, deposited {kept} of {len(rows)}"


def write_figures(folder: Path, found: Recurrence) -> list[Path]:
    """Accuracy with intervals, and decode tokens, as standalone HTML."""
    report = found.to_json()
    n = len(found.rows)
    hits = [report["intervals"][name]["hits"] for name in ("without", "with")]
    bars = Bars(
        f"Recurrence, {found.model}, n = {n}",
        ("accuracy",),
        (
            ("without the library", (share(hits[0], n),)),
            ("with the library", (share(hits[1], n),)),
        ),
    )
    names = {"one greedy run": "greedy_tokens", "solve, up to k": "solve_tokens", "replay": "replay_tokens"}
    amounts = {label: float(report[name]) for label, name in names.items()}
    title = f"Decoded tokens for the {report['deposited']} deposited problems, once each, {found.model}"
    return [
        write_bars(folder, "recurrence-accuracy", bars),
        write_amounts(folder, "recurrence-tokens", title, "tokens", amounts),
    ]
