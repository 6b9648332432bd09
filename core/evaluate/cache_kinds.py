"""Which cache kinds of the installed transformers come back bit for bit, measured: docs/cache-kinds.md.

Each case runs a tiny random model of a real architecture, captures its state, writes the artifact's bytes to a file,
and goes on live. A new process reads the file, restores, goes on in the same way; the digests of all logits are
compared. Kinds that we refuse are listed with the reason that the user would read.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from transformers import AutoConfig
from transformers import cache_utils as cu

from core.cache import new_cache
from core.evaluate.tiny_models import WINDOW, tiny_config, tiny_ids, tiny_model
from core.state import State, capture, layer_kinds, restore, state_tensors, tensors_from_artifact
from core.state.kinds import REFUSED
from library.artifact import decode, encode, tensor_digests
from library.digest import digest_bytes, digest_json
from library.errors import ScionError, UnsupportedState
from library.manifest import SCHEMA_VERSION, Cost, Fingerprint, Manifest, Run, Sampling

PROMPT = 2 * WINDOW + 7  # one prefill call, past the window
DECODED = 9  # single steps before the capture
SUFFIX = 3  # tokens of one call after the graft, before the greedy steps
ROOM = 64
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
CacheName = Literal["dynamic", "in place", "static", "fp8"]


@dataclass(frozen=True)
class Case:
    """An architecture of core/evaluate/tiny_models.py under one of the cache classes, in one dtype."""

    architecture: str
    cache: CacheName
    dtype: str


@dataclass(frozen=True)
class KindRow:
    """One line of the table. `steps`: greedy steps compared, each by all its logits. `reason` is empty if exact."""

    architecture: str
    cache: str
    kinds: tuple[str, ...]
    dtype: str
    outcome: Literal["exact", "divergent", "refused"]
    reason: str
    steps: int


ARCHITECTURES_BY_CACHE: tuple[tuple[CacheName, tuple[str, ...]], ...] = (
    ("in place", ("llama", "qwen3", "mistral", "gemma3_text", "gemma3n_text", "gemma4_text", "gpt_oss", "llama4_text")),
    ("dynamic", ("gemma3_text", "deepseek_v32", "qwen3_next", "falcon_h1", "zaya", "mamba2", "lfm2")),
    ("static", ("llama", "gemma3_text", "deepseek_v32", "qwen3_next", "falcon_h1", "zaya")),
    ("fp8", ("llama",)),
)
CASES = tuple(
    Case(architecture, cache, dtype)
    for cache, architectures in ARCHITECTURES_BY_CACHE
    for architecture in architectures
    for dtype in DTYPES
)


def measure_cache_kinds(cases: Sequence[Case] = CASES, *, steps: int = 32) -> tuple[KindRow, ...]:
    """Measure the cases, all in one new process, and list the refused kinds. About a second a case.

    The new process uses this one's number of threads. Raises ScionError if it fails as a whole.
    """
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{index:03d}.scion" for index in range(len(cases))]
        live = [_deposit(case, steps, file) for case, file in zip(cases, files, strict=True)]
        jobs = [
            {"case": asdict(case), "file": str(file), "steps": steps}
            for case, file, one in zip(cases, files, live, strict=True)
            if not one.refused
        ]
        answers = iter(_new_process(jobs) if jobs else [])
    rows = [_compare(case, one, one if one.refused else next(answers)) for case, one in zip(cases, live, strict=True)]
    return (*rows, *refused_kinds())


@dataclass(frozen=True)
class _Continued:
    """The layer kinds and the digest of each step's logits, or why there are none."""

    kinds: tuple[str, ...] = ()
    digests: tuple[str, ...] = ()
    refused: str = ""


def _compare(case: Case, live: _Continued, again: _Continued) -> KindRow:
    outcome: Literal["exact", "divergent", "refused"] = "exact"
    reason, steps = again.refused, len(live.digests)
    if reason:
        outcome, steps = "refused", 0
    elif again != live:
        pairs = zip(live.digests, again.digests, strict=True)
        steps = next((step for step, (one, other) in enumerate(pairs) if one != other), steps)
        outcome, reason = "divergent", f"the logits differ from step {steps} on"
    return KindRow(case.architecture, case.cache, live.kinds, case.dtype, outcome, reason, steps)


def refused_kinds() -> tuple[KindRow, ...]:
    """The cache kinds of transformers that are refused, each with what capture or the config's check says."""
    attempts: list[tuple[str, str, Callable[[], object]]] = []
    for cls in REFUSED:
        attempts.append(("any", cls.__name__, partial(capture, _holding(cls), length=1)))
    offloading = cu.DynamicCache()
    offloading.offloading = True
    recording = cu.DynamicSlidingWindowLayer(sliding_window=WINDOW)
    recording.update(torch.zeros(1, 1, 1, 8), torch.zeros(1, 1, 1, 8))
    recording.activate_past_recording()
    attempts.append(("any", "offloaded layers", partial(capture, offloading, length=1)))
    attempts.append(("any", "past recording", partial(capture, cu.Cache(layers=[recording]), length=1)))
    dynamic = tiny_config("llama", rope_parameters={"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0})
    attempts.append(("llama", "dynamic RoPE", partial(layer_kinds, dynamic)))
    for model_type in ("t5", "deepseek_v4", "unlimited_ocr"):
        attempts.append((model_type, "its config", partial(layer_kinds, AutoConfig.for_model(model_type))))
    rows = []
    for architecture, name, attempt in attempts:
        try:
            attempt()
        except UnsupportedState as error:
            rows.append(KindRow(architecture, name, (), "any", "refused", str(error), 0))
        else:
            raise ScionError(f"{name} of {architecture} should be refused, and was not")
    return tuple(rows)


def _holding(cls: type) -> Any:
    """A cache of this class, or one with such a layer; unmade, because their constructors want absent packages."""
    unmade: Any = object.__new__(cls)
    return unmade if issubclass(cls, cu.Cache) else cu.Cache(layers=[unmade])


def table(rows: Sequence[KindRow]) -> str:
    """The rows as a Markdown table."""
    lines = ["| architecture | cache | layer kinds | dtype | outcome | steps |", "|---|---|---|---|---|---|"]
    for row in rows:
        outcome = f"{row.outcome}: {row.reason}" if row.reason else row.outcome
        kinds, steps = ", ".join(dict.fromkeys(row.kinds)) or "-", str(row.steps) if row.kinds else "-"
        lines.append(f"| {row.architecture} | {row.cache} | {kinds} | {row.dtype} | {outcome} | {steps} |")
    return "\n".join(lines)


# ---- the live run ----------------------------------------------------------------------------------------------------


def _deposit(case: Case, steps: int, path: Path) -> _Continued:
    """Write the artifact of a fresh state to `path`, then go on with the live cache."""
    model = tiny_model(case.architecture, DTYPES[case.dtype])
    cache = _cache(case.cache, model.config)
    ids = tiny_ids(PROMPT + DECODED)
    for piece in (ids[:, :PROMPT], *ids[:, PROMPT:].split(1, dim=1)):
        _feed(model, cache, piece)
    try:
        state = capture(cache, length=PROMPT + DECODED)
    except UnsupportedState as error:
        return _Continued(refused=str(error))
    path.write_bytes(encode(_manifest(state, ids[0].tolist()), state_tensors(state)).to_bytes())
    return _Continued(tuple(layer.kind for layer in state.layers), _continue(model, cache, steps))


def _cache(name: CacheName, config: Any) -> cu.Cache:
    length = PROMPT + DECODED + ROOM
    if name == "in place":
        return new_cache(config, room=length)
    if name == "static":
        return cu.StaticCache(config, max_cache_len=length)
    return cu.QuantizedCache("fp8", config) if name == "fp8" else cu.DynamicCache(config=config)


@torch.inference_mode()
def _feed(model: Any, cache: cu.Cache, ids: torch.Tensor) -> torch.Tensor:
    logits: torch.Tensor = model(input_ids=ids, cache=cache, use_cache=True).logits[:, -1].float().contiguous()
    return logits


def _continue(model: Any, cache: cu.Cache, steps: int) -> tuple[str, ...]:
    """A suffix in one call, then greedy steps: the digest of each step's logits, as float32."""
    logits = _feed(model, cache, tiny_ids(SUFFIX))
    digests = []
    for _ in range(steps):
        logits = _feed(model, cache, logits.argmax(-1, keepdim=True))
        raw: Any = logits.numpy()
        digests.append(str(digest_bytes(memoryview(raw))))
    return tuple(digests)


def _manifest(state: State, ids: list[int]) -> Manifest:
    nothing = Fingerprint(digest=str(digest_json({})), fields={})
    return Manifest(
        schema_version=SCHEMA_VERSION,
        kind="solution",
        problem="",
        reference=None,
        solution="",
        thinking="",
        answer="",
        prompt_ids=tuple(ids[:PROMPT]),
        attempt_ids=tuple(ids[PROMPT:]),
        schedule=(Run(length=PROMPT, count=1), Run(length=1, count=DECODED)),
        graft_point=len(ids),
        sampling=Sampling(temperature="0", top_p="1", seed=0, max_tokens=DECODED),
        identity=nothing,
        environment=nothing,
        layers=state.layers,
        tensors=tensor_digests(state_tensors(state)),
        certificate=None,
        evidence=(),
        decisions=(),
        cost=Cost(prefill_tokens=PROMPT, decode_tokens=DECODED, microseconds=0, millijoules=None, flops=0),
        parent=None,
        source=None,
        created="",
    )


# ---- the new process -------------------------------------------------------------------------------------------------


def _new_process(jobs: Sequence[dict[str, Any]]) -> list[_Continued]:
    """The continuation of each job's restored state."""
    root = Path(__file__).resolve().parents[2]
    order = json.dumps({"threads": torch.get_num_threads(), "jobs": jobs})
    command = [sys.executable, "-m", "core.evaluate.cache_kinds", "worker"]
    done = subprocess.run(command, cwd=root, input=order, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ScionError(f"the process that restores the states failed: {done.stderr[-2000:]}")
    answers = json.loads(done.stdout.splitlines()[-1])
    return [_Continued(tuple(one["kinds"]), tuple(one["digests"]), one["refused"]) for one in answers]


def _graft(job: dict[str, Any]) -> _Continued:
    case = Case(**job["case"])
    artifact = decode(Path(job["file"]).read_bytes())
    layers = artifact.manifest.layers
    model = tiny_model(case.architecture, DTYPES[case.dtype])
    try:
        cache = restore(layers, tensors_from_artifact(artifact.tensors), model.config, device="cpu", room=ROOM)
    except ScionError as error:
        return _Continued(refused=str(error))
    return _Continued(tuple(layer.kind for layer in layers), _continue(model, cache, job["steps"]))


def _main() -> None:
    if sys.argv[1:] != ["worker"]:
        print(table(measure_cache_kinds()))
        return
    order = json.loads(sys.stdin.read())
    torch.set_num_threads(order["threads"])
    print(json.dumps([asdict(_graft(job)) for job in order["jobs"]]))


if __name__ == "__main__":
    _main()
