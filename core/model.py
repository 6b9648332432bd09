"""A frozen model: loaded once, never changed, with digests that say what it is and where it runs.

`FrozenModel` offers one forward call and text helpers; it does not sample, cache policies or know of libraries.
"""

from __future__ import annotations

import contextlib
import os
import platform
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import transformers
from safetensors import SafetensorError
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from core import packing, profiles
from core.attention import use_grouped
from core.profiles import Profile
from core.settings import Settings
from core.sources import Located, locate
from core.state import layer_kinds
from library.digest import Digest, canonical_json, digest_bytes, digest_json
from library.errors import ModelError, UnknownModel, UsageError
from library.manifest import Fingerprint

# What a configuration says about files and versions, not about what is computed.
_VOLATILE = {"_name_or_path", "transformers_version", "torch_dtype", "dtype", "architectures", "use_cache"}
_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
# The decode loop and cache classes are part of the environment: another one may round differently.
LOOP_VERSION = "inplace-2"


@dataclass(frozen=True)
class FrozenModel:
    """`identity` names what makes a state meaningful, `environment` what makes a continuation bit-identical."""

    name: str
    network: Any
    tokenizer: Any
    profile: Profile
    device: torch.device
    dtype: torch.dtype
    window: int
    parameters: int
    stop_ids: frozenset[int]
    identity: Fingerprint
    environment: Fingerprint
    lock: threading.RLock

    @property
    def config(self) -> Any:
        """The text model's configuration (the text part of a multimodal one)."""
        return self.network.config.get_text_config(decoder=True)

    @property
    def rows_independent(self) -> bool:
        """Does a row's result depend only on the batch's shape and itself? Not so with experts: in float32 a row's
        logits then depend on which tokens of other rows share an expert (measured on four of five such models)."""
        return not any(getattr(self.config, name, None) for name in _EXPERTS)

    def forward(self, ids: torch.Tensor, cache: Any) -> torch.Tensor:
        """One forward call: int64 ids [batch, length] -> float logits [batch, vocabulary] of the last position.

        Mutates `cache`. Must run under `torch.inference_mode()`. Sets the number of CPU threads back to the
        environment's, where another model or library changed it: products round otherwise with another.
        """
        threads = self.environment.fields.get("threads", 0)
        if threads and torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
        return self.network(input_ids=ids, cache=cache, logits_to_keep=1, use_cache=True).logits[:, -1]

    def prompt_ids(self, problem: str) -> list[int]:
        return profiles.prompt_ids(self.profile, self.tokenizer, problem)

    def next_turn_ids(self, text: str) -> list[int]:
        return profiles.next_turn_ids(self.profile, self.tokenizer, text)

    def decode(self, ids: Sequence[int]) -> str:
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=True))

    def weights_digest(self) -> Digest:
        """Digest of all weights as they lie in memory now; the same before and after any run."""
        return _weights_digest(self.network)


def load(settings: Settings, *, say: Callable[[str], None] | None = None) -> FrozenModel:
    """Load the model that the settings name. Raises `UnknownModel`, `ModelError`, `UsageError`."""
    notify = say or (lambda text: None)
    device = choose_device(settings.device)
    dtype = choose_dtype(settings.dtype, device)
    if settings.threads:
        torch.set_num_threads(settings.threads)
    _make_deterministic(device)
    located = locate(settings.model, settings.cache, say=notify)
    notify(f"loading {located.name} on {device} in {str(dtype).removeprefix('torch.')}")
    with _quiet():
        network, tokenizer = _read(located, settings, dtype)
    network.to(device).eval().requires_grad_(False)
    parameters = sum(p.numel() for p in network.parameters())
    if settings.packed:
        packing.pack(network)
        use_grouped(network)
    profile = profiles.choose(located.name, tokenizer)
    config = network.config.get_text_config(decoder=True)
    return FrozenModel(
        name=located.name,
        network=network,
        tokenizer=tokenizer,
        profile=profile,
        device=device,
        dtype=dtype,
        window=int(config.max_position_embeddings),
        parameters=parameters,
        stop_ids=profiles.stop_ids(profile, tokenizer, _configured_stops(network)),
        identity=fingerprint(identity_fields(network, tokenizer, dtype)),
        environment=fingerprint(environment_fields(network, device)),
        lock=threading.RLock(),
    )


def choose_device(wanted: str) -> torch.device:
    """`auto` is CUDA, then MPS, then CPU. Raises `UsageError` for one that is not there."""
    if wanted == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda", torch.cuda.current_device())
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(wanted)
    except RuntimeError as error:
        raise UsageError(f"unknown device {wanted!r}: give auto, cpu, cuda, cuda:N or mps") from error
    present = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        present["cuda"] = False
    if not present.get(device.type, False):
        raise UsageError(f"device {wanted!r} is not available here; --device auto picks one that is")
    return device


def choose_dtype(wanted: str, device: torch.device) -> torch.dtype:
    """The rule: float32 on CPU (bf16 is emulated on most), bfloat16 on CUDA where native, else float16."""
    if wanted != "auto":
        return {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}[wanted]
    if device.type == "cpu":
        return torch.float32
    if device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False):
        return torch.bfloat16
    return torch.float16


def identity_fields(network: Any, tokenizer: Any, dtype: torch.dtype) -> dict[str, Any]:
    """Readable fields of what makes a state meaningful; each is compared by name at a graft."""
    config = network.config.get_text_config(decoder=True)
    settings = _without_floats({k: v for k, v in config.to_dict().items() if k not in _VOLATILE})
    adapters = sorted(getattr(network, "peft_config", None) or {})
    return {
        "architecture": str(config.model_type),
        "weights": str(_weights_digest(network)),
        "config": str(digest_json(settings)),
        "tokenizer": str(_tokenizer_digest(tokenizer)),
        "chat_template": str(digest_bytes(str(getattr(tokenizer, "chat_template", None) or "").encode())),
        "adapter": ",".join(adapters),
        "dtype": str(dtype).removeprefix("torch."),
        "layers": _layers(config),
        "rope": _without_floats(getattr(config, "rope_parameters", None)),
        "sliding_window": getattr(config, "sliding_window", None),
    }


def environment_fields(network: Any, device: torch.device) -> dict[str, Any]:
    """Readable fields of what may change the rounding of a continuation."""
    fields: dict[str, Any] = {
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "device": device.type,
        "device_name": _device_name(device),
        "attention": str(network.config._attn_implementation),
        "loop": LOOP_VERSION,
        "packed": packing.VERSION if any(type(m) is packing.PackedLinear for m in network.modules()) else False,
        "threads": torch.get_num_threads() if device.type == "cpu" else 0,
        "machine": platform.machine(),
    }
    if device.type == "cpu":
        fields["capability"] = torch.backends.cpu.get_cpu_capability()
        fields["mkldnn"] = torch.backends.mkldnn.is_available()
    if device.type == "cuda":
        fields["cuda"] = str(torch.version.cuda)
        fields["tf32"] = torch.backends.cuda.matmul.allow_tf32
        fields["capability"] = ".".join(map(str, torch.cuda.get_device_capability(device)))
    return fields


def _layers(config: Any) -> list[list[Any]]:
    """Cache layer kinds in order, as [how many in a row, kind, heads, head dimension, window]."""
    runs: list[list[Any]] = []
    for layer in layer_kinds(config):
        shape = [layer.kind, layer.heads, layer.head_dim, layer.window]
        if runs and runs[-1][1:] == shape:
            runs[-1][0] += 1
        else:
            runs.append([1, *shape])
    return runs


def fingerprint(fields: Mapping[str, Any]) -> Fingerprint:
    return Fingerprint(digest=str(digest_json(dict(fields))), fields=dict(fields))


def differing(stored: Mapping[str, Any], here: Mapping[str, Any]) -> dict[str, tuple[object, object]]:
    """Fields in which two fingerprints differ: name -> (stored, here)."""
    names = sorted(stored.keys() | here.keys())
    return {n: (stored.get(n), here.get(n)) for n in names if stored.get(n) != here.get(n)}


def _read(located: Located, settings: Settings, dtype: torch.dtype) -> tuple[Any, Any]:
    common: dict[str, Any] = {"trust_remote_code": False}
    if located.hub and settings.revision:
        common["revision"] = settings.revision
    attention = {} if settings.attention == "auto" else {"attn_implementation": settings.attention}
    try:
        AutoConfig.from_pretrained(located.path, **common)
        tokenizer = AutoTokenizer.from_pretrained(located.path, **common)
        # Only safetensors: other weight files are pickles.
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            located.path, dtype=dtype, use_safetensors=True, output_loading_info=True, **attention, **common
        )
    except (OSError, ValueError, KeyError, ImportError) as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        where = "as a hub id (is the network reachable, is it downloaded?)" if located.hub else f"in {located.path}"
        raise UnknownModel(f"cannot load model {located.name!r} {where}: {first}") from error
    except SafetensorError as error:
        raise ModelError(f"the weights of {located.name!r} in {located.path} are damaged: {error}") from error
    except RuntimeError as error:
        raise ModelError(f"model {located.name!r} does not fit this machine: {error}") from error
    network, loading = loaded
    if missing := sorted(loading["missing_keys"]):  # transformers fills them with random numbers and goes on
        raise ModelError(
            f"the weights of {located.name!r} in {located.path} are incomplete: {len(missing)} are missing, such as "
            f"{missing[0]}; fetch the model again"
        )
    return network, tokenizer


def _weights_digest(network: Any) -> Digest:
    entries: dict[str, list[Any]] = {}
    for name, tensor in sorted(network.state_dict().items()):
        flat = tensor.detach().to("cpu").contiguous().reshape(-1).view(torch.uint8).numpy()
        entries[name] = [str(tensor.dtype), list(tensor.shape), str(digest_bytes(memoryview(flat)))]
    return digest_json(entries)


def _tokenizer_digest(tokenizer: Any) -> Digest:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        return digest_bytes(backend.to_str().encode())
    return digest_bytes(canonical_json(tokenizer.get_vocab()))


def _configured_stops(network: Any) -> list[int]:
    stops = getattr(network.generation_config, "eos_token_id", None)
    return [] if stops is None else [stops] if isinstance(stops, int) else list(stops)


def _without_floats(value: Any) -> Any:
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, Mapping):
        return {str(k): _without_floats(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_without_floats(v) for v in value]
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def _device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _make_deterministic(device: torch.device) -> None:
    if device.type == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.deterministic = True


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """transformers' progress bars and notices are for notebooks; ours go through `say`."""
    verbosity = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers.logging.set_verbosity(verbosity)
