"""The registry of cache layer kinds: which classes we can store, of which parts, and why the others are refused.

`family` is the kind that the model's config asks for: a static layer is another way to keep a full one. A class is
known by identity, not by inheritance: a subclass may carry more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from transformers import cache_utils as cu

from core.cache import GrowingLayer, SlidingBufferLayer
from core.state.parts import Attributes, Found, Indexer, Keys, Nothing, Part, Recurrent, Window
from core.state.static_parts import Fp8, StaticIndexer, StaticKeys, StaticWindow
from library.errors import UnsupportedState


@dataclass(frozen=True)
class Kind:
    """One way to keep a layer. `fresh(attributes, room)` makes an empty layer with room for so many positions."""

    name: str
    family: str
    classes: tuple[type, ...]
    parts: tuple[Part, ...]
    fresh: Callable[[Attributes, int], Any]
    also_known: frozenset[str] = frozenset()

    def read(self, layer: Any, length: int) -> Found:
        """Everything that the layer holds. Raises UnsupportedState, naming the class and the attribute or count."""
        known = self.also_known.union(*(part.known for part in self.parts))
        unknown = sorted(set(vars(layer)) - known)
        if unknown:
            raise UnsupportedState(
                f"{type(layer).__name__} carries an attribute that cannot be stored yet: {', '.join(unknown)}"
            )
        found = Found()
        for part in self.parts:
            one = part.read(layer, length)
            found.tensors |= one.tensors
            found.attributes |= one.attributes
        return found


def _window(attributes: Attributes) -> int:
    return int(attributes["sliding_window"])


def _states(attributes: Attributes) -> int:
    return int(attributes["number_of_states"])


def _static(attributes: Attributes) -> dict[str, int]:
    return {"max_cache_len": int(attributes["max_cache_len"])}


def _static_window(attributes: Attributes) -> dict[str, int]:
    # the layer keeps min(window, length asked for) only, and behaves by that number
    return _static(attributes) | {"sliding_window": int(attributes["max_cache_len"])}


KINDS: tuple[Kind, ...] = (
    Kind("none", "none", (cu.DummyLayer,), (Nothing(),), lambda a, room: cu.DummyLayer()),
    Kind(
        "full",
        "full",
        (cu.DynamicLayer, GrowingLayer),
        (Keys(),),
        lambda a, room: GrowingLayer(room),
        Keys.buffered,
    ),
    Kind(
        "sliding",
        "sliding",
        (cu.DynamicSlidingWindowLayer, SlidingBufferLayer),
        (Window(),),
        lambda a, room: SlidingBufferLayer(_window(a), room),
        Keys.buffered,
    ),
    Kind("indexed", "indexed", (cu.DynamicIndexedLayer,), (Keys(), Indexer()), lambda a, r: cu.DynamicIndexedLayer()),
    Kind(
        "linear",
        "linear",
        (cu.LinearAttentionLayer,),
        (Recurrent(),),
        lambda a, room: cu.LinearAttentionLayer(_states(a)),
    ),
    Kind(
        "hybrid",
        "hybrid",
        (cu.LinearAttentionAndFullAttentionLayer,),
        (Keys(), Recurrent()),
        lambda a, room: cu.LinearAttentionAndFullAttentionLayer(_states(a)),
    ),
    Kind(
        "hybrid_sliding",
        "hybrid_sliding",
        (cu.LinearAttentionAndSlidingWindowAttentionLayer,),
        (Window(), Recurrent()),
        lambda a, room: cu.LinearAttentionAndSlidingWindowAttentionLayer(_window(a), _states(a)),
    ),
    Kind("static", "full", (cu.StaticLayer,), (StaticKeys(),), lambda a, room: cu.StaticLayer(**_static(a))),
    Kind(
        "static_sliding",
        "sliding",
        (cu.StaticSlidingWindowLayer,),
        (StaticWindow(),),
        lambda a, room: cu.StaticSlidingWindowLayer(**_static_window(a)),
    ),
    Kind(
        "static_indexed",
        "indexed",
        (cu.StaticIndexedLayer,),
        (StaticKeys(), StaticIndexer()),
        lambda a, room: cu.StaticIndexedLayer(**_static(a)),
    ),
    Kind(
        "static_hybrid",
        "hybrid",
        (cu.LinearAttentionAndStaticFullAttentionLayer,),
        (StaticKeys(), Recurrent()),
        lambda a, room: cu.LinearAttentionAndStaticFullAttentionLayer(**_static(a), number_of_states=_states(a)),
    ),
    Kind(
        "static_hybrid_sliding",
        "hybrid_sliding",
        (cu.LinearAttentionAndStaticSlidingWindowAttentionLayer,),
        (StaticWindow(), Recurrent()),
        lambda a, room: cu.LinearAttentionAndStaticSlidingWindowAttentionLayer(
            **_static_window(a), number_of_states=_states(a)
        ),
    ),
    Kind("fp8", "full", (cu.Fp8QuantizedLayer,), (Fp8(),), lambda a, room: cu.Fp8QuantizedLayer()),
)
BY_NAME: Mapping[str, Kind] = MappingProxyType({kind.name: kind for kind in KINDS})
BY_CLASS: Mapping[type, Kind] = MappingProxyType({cls: kind for kind in KINDS for cls in kind.classes})

# Classes that transformers has and we refuse, with the reason that a person reads.
REFUSED: Mapping[type, str] = MappingProxyType(
    {
        cu.QuantoQuantizedLayer: "its packed tensors belong to the installed version of optimum-quanto",
        cu.HQQQuantizedLayer: "its packed tensors and their settings belong to the installed version of hqq",
        cu.EncoderDecoderCache: "encoder-decoder models keep the encoder's output beside the tokens; "
        "only decoder models are supported",
        cu.MtpCache: "multi-token prediction runs ahead of the accepted tokens; decode without it",
        cu.DFlashCache: "speculative decoding counts accepted tokens outside the layers; decode without it",
    }
)


def kind_of(layer: object) -> Kind:
    """The kind of a live layer. Raises UnsupportedState, with the reason."""
    cls = type(layer)
    if cls in BY_CLASS:
        return BY_CLASS[cls]
    raise UnsupportedState(f"cannot store {cls.__name__}: {REFUSED.get(cls, 'an unknown kind of cache')}")
