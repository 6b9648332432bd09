"""The state of a model between two tokens: live cache to named tensors and back, byte for byte.

`parts` and `static_parts` read and write what a layer carries, `kinds` is the registry of layer classes, `capture` and
`restore` handle whole caches, `wire` goes to and from an artifact's bytes, `config` says what a model asks for.
"""

from __future__ import annotations

from core.state.capture import State, capture
from core.state.config import LayerKind, layer_kinds
from core.state.restore import restore, select_row
from core.state.wire import state_tensors, tensors_from_artifact

__all__ = [
    "LayerKind",
    "State",
    "capture",
    "layer_kinds",
    "restore",
    "select_row",
    "state_tensors",
    "tensors_from_artifact",
]
