"""Small artifacts for tests: a real manifest and a few tensors of several dtypes, without any model."""

from __future__ import annotations

import struct
from typing import Any

from library.artifact import TensorData, encode, tensor_digests
from library.digest import digest_bytes, digest_json
from library.manifest import SCHEMA_VERSION, Certificate, Cost, Fingerprint, LayerSpec, Manifest, Run, Sampling


def tensors(scale: int = 1) -> list[TensorData]:
    """Five tensors; `scale` multiplies the sequence length of the keys and values."""
    keys = struct.pack(f"<{6 * scale}f", *(float(number) for number in range(6 * scale)))
    return [
        TensorData("layer.0.key", "F32", (1, 2, 3 * scale), memoryview(keys)),
        TensorData("layer.0.value", "BF16", (1, 2, 3 * scale), memoryview(bytes(range(12)) * scale)),
        TensorData("layer.1.mask", "BOOL", (3,), memoryview(b"\x00\x01\x01")),
        TensorData("layer.1.seen", "I64", (), memoryview(struct.pack("<q", -5))),
        TensorData("layer.1.empty", "F32", (0, 4), memoryview(b"")),
    ]


def fingerprint(**fields: Any) -> Fingerprint:
    return Fingerprint(digest=str(digest_json(fields)), fields=fields)


def manifest(items: list[TensorData] | None = None, **changes: Any) -> Manifest:
    """A manifest that fits `items` (default: `tensors()`); `changes` replace fields without any check."""
    items = tensors() if items is None else items
    layers: dict[int, dict[str, str]] = {}
    for item in items:
        _, index, role = item.name.split(".")
        layers.setdefault(int(index), {})[role] = item.name
    made = Manifest(
        schema_version=SCHEMA_VERSION,
        kind="solution",
        problem="Berechne 3·x − 1 für x = 4 \U0001f9ee",
        reference=None,
        solution='It is "11".\n\x01\x7f',
        thinking="",
        answer="11",
        prompt_ids=(5, 6, 7),
        attempt_ids=(8, 9),
        schedule=(Run(length=3, count=1), Run(length=1, count=2, batch=2, row=1)),
        graft_point=5,
        sampling=Sampling(temperature="0.7", top_p="0.95", seed=2**64 - 1, max_tokens=16),
        identity=fingerprint(weights="blake3:" + "1" * 64, dtype="float32"),
        environment=fingerprint(torch="2.13.0", threads=2),
        layers=tuple(
            LayerSpec(index=index, kind="full", tensors=roles, attributes={"cumulative_length": 5})
            for index, roles in sorted(layers.items())
        ),
        tensors=tensor_digests(items),
        certificate=Certificate(
            cue_ids=(1, 2), answer_ids=(3,), step_digests=(str(digest_bytes(b"logits")),), answer="11"
        ),
        evidence=(),
        decisions=(),
        cost=Cost(prefill_tokens=3, decode_tokens=2, microseconds=10, millijoules=None, flops=1),
        parent=None,
        source=None,
        created="2026-01-01T00:00:00.000000Z",
    )
    return made.model_copy(update=changes)


def artifact_bytes(scale: int = 1, **changes: Any) -> bytes:
    """A whole small artifact file; `changes` replace fields of the manifest."""
    items = tensors(scale)
    return encode(manifest(items, **changes), items).to_bytes()
