"""Lossless compression of cold blobs: every byte comes back, and nothing unpacks to more than it declared."""

from __future__ import annotations

import random
import struct
import tracemalloc

import numpy as np
import pytest
import zstandard

from library import compression
from library.compression import BLOCK_BYTES, compress, decompress, measure
from library.digest import digest_bytes
from library.errors import CorruptError, DigestMismatch, FormatError

HEAD = 48  # magic 8, size 8, digest 32


def values(count: int) -> bytes:
    """Like a state: normally distributed bfloat16, the upper halves of float32."""
    wide = np.random.default_rng(5).normal(size=count).astype("<f4").view("<u2")[1::2]
    return wide.astype("<u2").tobytes()


def header(size: int, data: bytes) -> bytes:
    return struct.pack("<8sQ32s", b"scionz1\n", size, bytes.fromhex(digest_bytes(data).hex))


SAMPLES = {
    "empty": b"",
    "one byte": b"x",
    "three bytes": b"xyz",
    "odd": random.Random(1).randbytes(10_001),
    "zeros": bytes(100_000),
    "values": values(50_000),
    "one block": values(BLOCK_BYTES // 2),
    "a block and a byte": values(BLOCK_BYTES // 2) + b"!",
    "several blocks": values(BLOCK_BYTES + 17) + b"end",
}


@pytest.mark.parametrize("width", [None, 1, 2, 4])
@pytest.mark.parametrize("data", SAMPLES.values(), ids=SAMPLES)
def test_every_byte_comes_back(data: bytes, width: int | None) -> None:
    packed = compress(data, width=width)
    found = decompress(packed, len(data), digest_bytes(data))
    assert bytes(found) == data
    assert isinstance(found, bytearray)


def test_it_finds_the_width_and_gains_by_it() -> None:
    data = SAMPLES["values"]
    plain, planes, chosen = (len(compress(data, width=width)) for width in (1, 2, None))
    assert chosen == planes < plain
    assert planes < 0.85 * len(data)


def test_the_result_depends_only_on_the_data() -> None:
    data = SAMPLES["several blocks"]
    assert compress(data) == compress(bytearray(data))


def test_every_flipped_byte_is_refused() -> None:
    data = SAMPLES["values"][:600]
    digest, packed = digest_bytes(data), bytearray(compress(data))
    for position in range(len(packed)):
        for bit in (1, 0x10, 0x80):
            packed[position] ^= bit
            # A frame has bits without meaning; a flip in one of those gives the same bytes, and nothing else does.
            try:
                assert decompress(packed, len(data), digest) == data
            except CorruptError:
                pass
            else:
                assert position >= HEAD + 5
            packed[position] ^= bit


def test_other_declarations_are_refused_before_unpacking() -> None:
    data = SAMPLES["values"]
    packed, digest = compress(data), digest_bytes(data)
    for size, name in ((len(data) + 1, digest), (len(data), digest_bytes(b"other"))):
        with pytest.raises(FormatError, match="declares"):
            decompress(packed, size, name)


def test_cut_or_longer_blobs_are_refused() -> None:
    data = SAMPLES["values"]
    packed, digest = compress(data), digest_bytes(data)
    for length in (0, 7, HEAD - 1, HEAD, HEAD + 3, HEAD + 5, len(packed) // 2, len(packed) - 1):
        with pytest.raises(FormatError):
            decompress(packed[:length], len(data), digest)
    for extra in (b"\0", zstandard.compress(b"more")):
        with pytest.raises(FormatError, match="follow"):
            decompress(packed + extra, len(data), digest)


def test_a_frame_with_other_content_is_a_digest_mismatch() -> None:
    data, other = bytes(1000), bytes(999) + b"\1"
    frame = zstandard.compress(other)
    with pytest.raises(DigestMismatch):
        decompress(header(1000, data) + struct.pack("<BI", 1, len(frame)) + frame, 1000, digest_bytes(data))


def bomb_frames() -> dict[str, bytes]:
    streamed = zstandard.ZstdCompressor(write_content_size=False)
    return {
        "declares 64 MB": zstandard.compress(bytes(1 << 26)),
        "declares nothing": streamed.compress(bytes(1 << 24)),
        "two frames": zstandard.compress(bytes(1000)) + zstandard.compress(bytes(1000)),
        "skippable frame": struct.pack("<II", 0x184D2A50, 4) + b"abcd" + zstandard.compress(bytes(1000)),
        "too short": zstandard.compress(bytes(999)),
        "not zstd": b"PK\x03\x04" + bytes(100),
        "empty": b"",
    }


@pytest.mark.parametrize("name", bomb_frames().keys())
def test_bombs_stop_at_the_declared_size(name: str) -> None:
    frame = bomb_frames()[name]
    packed = header(1000, bytes(1000)) + struct.pack("<BI", 1, len(frame)) + frame
    tracemalloc.start()
    try:
        with pytest.raises(FormatError):
            decompress(packed, 1000, digest_bytes(bytes(1000)))
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_an_unknown_width_is_refused() -> None:
    data = bytes(1000)
    packed = bytearray(compress(data))
    packed[HEAD] = 3
    with pytest.raises(FormatError, match="width"):
        decompress(packed, 1000, digest_bytes(data))


def test_measure_compares_the_methods_on_the_same_bytes() -> None:
    data = [SAMPLES["values"], SAMPLES["odd"]]
    results = {item.method: item for item in measure(data, levels=(1,))}
    assert set(results) == {f"{kind}, level 1" for kind in ("plain", "planes of 2", "planes of 4", "chosen")}
    assert all(item.raw_bytes == sum(map(len, data)) for item in results.values())
    assert results["planes of 2, level 1"].ratio > results["plain, level 1"].ratio > 1
    assert compression.LEVEL == 1
