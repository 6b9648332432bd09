"""Named tensors back to a cache that a model can go on with.

Knows cache layers and what a config asks for; not models, tokens or files. What comes in may be someone else's file:
its layers are checked against the config before anything is built, and what was built is read back and compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from transformers import cache_utils as cu

from core.state.bulk import fill
from core.state.capture import read_row
from core.state.config import layer_kinds
from core.state.kinds import BY_NAME, Kind
from library.errors import ContextOverflow, FormatError, IdentityMismatch, UnsupportedState
from library.manifest import LayerSpec

if TYPE_CHECKING:
    from transformers import PreTrainedConfig


def restore(
    layers: Sequence[LayerSpec],
    tensors: Mapping[str, torch.Tensor],
    config: PreTrainedConfig,
    *,
    device: torch.device | str,
    room: int = 0,
) -> cu.Cache:
    """A fresh one-row cache with this content, in memory of its own: the tensors are read once and never written.

    `room`: tokens to come, for which buffers are taken now (full and sliding layers; others grow as they do).
    Raises IdentityMismatch when the config asks for other layers, FormatError for a state that contradicts itself,
    UnsupportedState for an unknown kind, ContextOverflow when a static layer has no such room.
    """
    _check_config(layers, config)
    target = torch.device(device)
    return _build(layers, tensors, {spec.index: target for spec in layers}, room)


def select_row(cache: cu.Cache, row: int, *, length: int, batch: int, room: int = 0) -> cu.Cache:
    """A fresh cache with one row of a live one, on the same device; the live one goes on unchanged.

    Arguments and errors as `capture` and `restore`.
    """
    state = read_row(cache, length=length, row=row, batch=batch, device=None)
    devices = {
        spec.index: next((state.tensors[name].device for name in spec.tensors.values()), torch.device("cpu"))
        for spec in state.layers
    }
    return _build(state.layers, state.tensors, devices, room)


def _check_config(layers: Sequence[LayerSpec], config: PreTrainedConfig) -> None:
    wanted = layer_kinds(config)
    if [spec.index for spec in layers] != list(range(len(layers))):
        raise FormatError("the layers are not in order")
    if len(layers) != len(wanted):
        raise IdentityMismatch({"number of cache layers": (len(layers), len(wanted))})
    for spec, want in zip(layers, wanted, strict=True):
        family, window = _kind(spec).family, spec.attributes.get("sliding_window", want.window)
        if family != want.kind:
            raise IdentityMismatch({f"kind of cache layer {spec.index}": (family, want.kind)})
        if window != want.window:
            raise IdentityMismatch({f"window of cache layer {spec.index}": (window, want.window)})


@torch.no_grad()
def _build(
    layers: Sequence[LayerSpec],
    tensors: Mapping[str, torch.Tensor],
    devices: Mapping[int, torch.device],
    room: int,
) -> cu.Cache:
    sources = [_sources(spec, tensors) for spec in layers]
    length = _length(layers, sources)
    built = [_fresh(spec, length, room) for spec in layers]
    on_cpu = [index for index, device in devices.items() if device.type == "cpu"]
    fill([built[index] for index in on_cpu], [sources[index] for index in on_cpu])
    for layer, spec, source in zip(built, layers, sources, strict=True):
        kind = _kind(spec)
        try:
            for part in kind.parts:
                part.write(layer, source, spec.attributes, devices[spec.index])
            again = kind.read(layer, length)
        except (KeyError, TypeError, ValueError, IndexError, UnsupportedState) as error:
            raise FormatError(f"cache layer {spec.index} ({spec.kind}) contradicts itself: {error!r}") from error
        if again.attributes != spec.attributes or set(again.tensors) != set(source):
            raise FormatError(f"cache layer {spec.index} ({spec.kind}) does not read back as it is described")
    for device in set(devices.values()):
        if device.type == "cuda":  # the copies above were asynchronous
            torch.cuda.current_stream(device).synchronize()
    return _cache_of(layers, built)


def _fresh(spec: LayerSpec, length: int, room: int) -> Any:
    """An empty layer of this kind with room for these positions and those to come."""
    kind, size = _kind(spec), spec.attributes.get("max_cache_len")
    if size is not None and kind.family in ("full", "indexed", "hybrid") and length + room > size:
        raise ContextOverflow(f"the state's static buffer holds {size} positions, not {length} and {room} to come")
    try:
        return kind.fresh(spec.attributes, length + room)
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"cache layer {spec.index} ({spec.kind}) contradicts itself: {error!r}") from error


def _kind(spec: LayerSpec) -> Kind:
    if spec.kind not in BY_NAME:
        raise UnsupportedState(f"cache layer {spec.index} is of kind {spec.kind!r}, which this version does not know")
    return BY_NAME[spec.kind]


def _sources(spec: LayerSpec, tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The layer's tensors by role, each with the rank and the one row that its role has."""
    found: dict[str, torch.Tensor] = {}
    for role, name in spec.tensors.items():
        if name not in tensors:
            raise FormatError(f"cache layer {spec.index} names a tensor that is not there: {name!r}")
        tensor = tensors[name]
        rows = 1 if role == "indexer_position_ids" else 0
        scalar = role.endswith("_scale")
        if tensor.ndim != 0 if scalar else tensor.ndim <= rows or tensor.shape[rows] != 1:
            raise FormatError(f"tensor {name!r} is no {role} of one sequence: shape {tuple(tensor.shape)}")
        if role in ("keys", "values", "quantized_keys", "quantized_values") and tensor.ndim != 4:
            raise FormatError(f"tensor {name!r} has {tensor.ndim} dimensions, not 4")
        found[role] = tensor
    for keys, values in (("keys", "values"), ("quantized_keys", "quantized_values")):
        if keys in found and values in found and found[keys].shape[:-1] != found[values].shape[:-1]:
            raise FormatError(f"cache layer {spec.index} has keys and values of different shapes")
    return found


def _length(layers: Sequence[LayerSpec], sources: Sequence[Mapping[str, torch.Tensor]]) -> int:
    """How many positions the layers agree on; 0 if no layer counts any (linear attention only)."""
    counts: set[int] = set()
    for spec, source in zip(layers, sources, strict=True):
        seen = spec.attributes.get("cumulative_length_int", spec.attributes.get("cumulative_length"))
        keys = source.get("keys", source.get("quantized_keys"))
        if seen is not None:
            if type(seen) is not int:
                raise FormatError(f"cache layer {spec.index} counts {seen!r} positions")
            counts.add(seen)
        elif keys is not None:
            counts.add(keys.shape[-2])
    if len(counts) > 1:
        raise FormatError(f"the cache layers disagree on the length: {sorted(counts)}")
    return counts.pop() if counts else 0


def _cache_of(layers: Sequence[LayerSpec], built: list[Any]) -> cu.Cache:
    kinds = {spec.kind for spec in layers}
    cls: type[cu.Cache] = cu.DynamicCache
    if any(kind.startswith("static") for kind in kinds):
        cls = cu.StaticCache
    elif "fp8" in kinds:
        cls = cu.QuantizedCache
    cache = cls.__new__(cls)  # their own constructors would make their own layers
    cu.Cache.__init__(cache, layers=built)
    return cache
