"""The artifact file: one encoding, views without copies, readable by the safetensors package."""

from __future__ import annotations

import itertools
import mmap
import random
import struct
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from safetensors import deserialize
from safetensors.numpy import load

from library import artifact
from library import manifest as manifests
from library.artifact import TensorData, decode, decode_header, encode, header_size, tensor_digests
from library.digest import digest_bytes
from library.errors import DigestMismatch, FormatError, UsageError
from library.manifest import LayerSpec
from tests.library.artifacts import artifact_bytes, fingerprint, manifest, tensors


def test_round_trip_keeps_every_byte_and_field() -> None:
    items = tensors()
    encoded = encode(manifest(items), items)
    data = encoded.to_bytes()
    found = decode(data, encoded.digest)
    assert found.digest == encoded.digest == digest_bytes(data)
    assert encoded.size == len(data)
    assert found.manifest == manifest(items)
    assert {name: (t.dtype, t.shape, bytes(t.data)) for name, t in found.tensors.items()} == {
        t.name: (t.dtype, t.shape, bytes(t.data)) for t in items
    }
    assert encode(found.manifest, list(found.tensors.values())).to_bytes() == data


def test_the_order_of_the_tensors_does_not_matter() -> None:
    items = tensors()
    assert len({encode(manifest(items), list(order)).digest for order in itertools.permutations(items)}) == 1


def test_encode_copies_no_tensor_and_decode_neither() -> None:
    items = tensors()
    big = bytearray(1 << 16)
    items[1] = TensorData(items[1].name, "BF16", (1, 2, 1 << 14), memoryview(big))
    encoded = encode(manifest(items), items)
    assert any(chunk.obj is big for chunk in encoded.chunks)
    buffer = bytearray(encoded.to_bytes())
    found = decode(buffer)
    assert all(t.data.obj is buffer for t in found.tensors.values())
    assert not found.tensors["layer.0.key"].data.readonly
    assert decode(bytes(buffer)).tensors["layer.0.key"].data.readonly


@pytest.mark.parametrize("scale", [1, 2, 3, 5, 8])
def test_every_tensor_starts_at_a_multiple_of_its_element_size(scale: int) -> None:
    data = artifact_bytes(scale)
    base = np.frombuffer(data, np.uint8).ctypes.data
    assert header_size(data) % 64 == 0
    for tensor in decode(data).tensors.values():
        if tensor.data.nbytes:
            offset = np.frombuffer(tensor.data, np.uint8).ctypes.data - base
            assert offset % artifact.ITEM_SIZES[tensor.dtype] == 0


def test_the_safetensors_package_reads_it() -> None:
    items = tensors()
    data = artifact_bytes()
    theirs = {name: (view["dtype"], tuple(view["shape"]), bytes(view["data"])) for name, view in deserialize(data)}
    assert theirs == {t.name: (t.dtype, t.shape, bytes(t.data)) for t in items}
    plain = [t for t in items if t.dtype != "BF16"]  # numpy has no bfloat16
    arrays = load(encode(manifest(plain), plain).to_bytes())
    assert arrays["layer.0.key"].tolist() == [[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]]


def test_arrays_of_other_formats_are_taken_as_bytes() -> None:
    array = np.arange(12, dtype="<f4").reshape(3, 4)
    item = TensorData("layer.0.key", "F32", (3, 4), memoryview(array))
    assert bytes(decode(encode(manifest([item]), [item]).to_bytes()).tensors[item.name].data) == array.tobytes()
    with pytest.raises(UsageError):
        encode(manifest([item]), [replace(item, shape=(4, 3), data=memoryview(array.T))])


def test_decode_header_needs_only_the_front() -> None:
    data = artifact_bytes()
    assert decode_header(data[: header_size(data[:8])]) == decode(data).manifest
    with pytest.raises(FormatError, match="cut short"):
        decode_header(data[: header_size(data) - 1])
    with pytest.raises(FormatError):
        header_size(data[:7])


def test_the_digest_is_checked_before_anything_is_parsed() -> None:
    with pytest.raises(DigestMismatch):
        decode(b"\xff" * 100, digest_bytes(b"other"))


def test_tensor_digests_may_be_left_out_only_against_a_content_digest() -> None:
    data = artifact_bytes()
    assert decode(data, digest_bytes(data), verify_tensors=False).manifest == decode(data).manifest
    with pytest.raises(UsageError):
        decode(data, verify_tensors=False)


def test_a_swapped_tensor_is_named() -> None:
    data = bytearray(artifact_bytes())
    data[-1] ^= 1
    with pytest.raises(DigestMismatch, match="layer"):
        decode(data)


def test_a_mapped_file_is_refused() -> None:
    with mmap.mmap(-1, 4096) as mapped, pytest.raises(UsageError, match="memory"):
        decode(memoryview(mapped))


BAD_TENSORS = {
    "name": ({"name": "../key"}, "not a tensor name"),
    "newline": ({"name": "key\n"}, "not a tensor name"),
    "empty name": ({"name": ""}, "not a tensor name"),
    "long name": ({"name": "k" * 129}, "not a tensor name"),
    "reserved name": ({"name": "__metadata__"}, "not a tensor name"),
    "dtype": ({"dtype": "F4"}, "unknown dtype"),
    "shape": ({"shape": (1, 2, 4)}, "do not fit"),
    "negative": ({"shape": (-1, -2, 3)}, "impossible shape"),
    "rank": ({"shape": (1,) * 8 + (6,)}, "impossible shape"),
}


@pytest.mark.parametrize(("change", "reason"), BAD_TENSORS.values(), ids=BAD_TENSORS)
def test_the_writer_refuses_what_the_reader_would(change: dict[str, Any], reason: str) -> None:
    bad = [replace(tensors()[0], **change), *tensors()[1:]]
    layer = LayerSpec(index=0, kind="full", tensors={f"role{n}": t.name for n, t in enumerate(bad)}, attributes={})
    named = manifest(tensors(), layers=(layer,), tensors=tensor_digests(bad))
    with pytest.raises(FormatError, match=reason):
        encode(named, bad)


def test_the_writer_refuses_other_contradictions() -> None:
    items = tensors()
    with pytest.raises(FormatError, match="same name"):
        encode(manifest(items), [*items, items[0]])
    with pytest.raises(FormatError, match="other tensors"):
        encode(manifest(items), items[1:])
    with pytest.raises(DigestMismatch):
        encode(manifest(items), [replace(items[0], data=memoryview(bytes(24))), *items[1:]])
    bad = [*items[:2], replace(items[2], data=memoryview(b"\x00\x01\x02")), *items[3:]]
    with pytest.raises(FormatError, match="truth"):
        encode(manifest(bad), bad)


def test_random_artifacts_round_trip() -> None:
    dice = random.Random(3)
    names = sorted(artifact.ITEM_SIZES)
    for _ in range(200):
        items = []
        for number in range(dice.randrange(1, 6)):
            dtype = dice.choice(names)
            shape = tuple(dice.randrange(4) for _ in range(dice.randrange(4)))
            count = artifact.ITEM_SIZES[dtype] * int(np.prod(shape, dtype=int))
            data = bytes(count) if dtype == "BOOL" else dice.randbytes(count)
            items.append(TensorData(f"layer.{number}.k", dtype, shape, memoryview(data)))
        data = encode(manifest(items), items).to_bytes()
        assert {n: bytes(t.data) for n, t in decode(data).tensors.items()} == {t.name: bytes(t.data) for t in items}
        assert len(deserialize(data)) == len(items)


def test_an_older_schema_version_opens_and_a_newer_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    old = artifact_bytes(solution="")
    # The next version renames nothing but empties into a text, as an example of a migration.
    monkeypatch.setattr(manifests, "SCHEMA_VERSION", 2)
    monkeypatch.setattr(manifests, "MIGRATIONS", {1: lambda value: {**value, "solution": value["solution"] or "none"}})
    opened = decode(old, digest_bytes(old)).manifest
    assert (opened.schema_version, opened.solution) == (2, "none")
    newer = artifact_bytes_of_version(2)
    monkeypatch.undo()
    with pytest.raises(FormatError, match="schema version 2 is newer than 1"):
        decode(newer)


def artifact_bytes_of_version(version: int) -> bytes:
    items = tensors()
    return encode(manifest(items, schema_version=version), items).to_bytes()


def test_fixed_bytes() -> None:
    """The encoding may not drift: every library that exists would lose its names."""
    data = artifact_bytes(identity=fingerprint(), environment=fingerprint())
    assert struct.unpack("<Q", data[:8]) == (header_size(data) - 8,)
    assert str(digest_bytes(data)) == "blake3:3b5b4cc9f4b6c46649e259af8893aa4ce2d52f0e2ee8568319964ff65dcdf324"
