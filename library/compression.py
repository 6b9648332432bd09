"""Lossless compression of cold blobs: byte planes of blocks, each through zstd; the raw digest travels along.

Knows bytes, not artifacts: the element width (1, 2 or 4) is found by trying. Neighbouring values of a state share
their sign and exponent bytes but not their mantissas; a plane of exponents compresses well, the interleaved bytes
do not.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import zstandard

from library.digest import Digest, digest_bytes
from library.errors import DigestMismatch, FormatError

Buffer = bytes | bytearray | memoryview
MAGIC = b"scionz1\n"
BLOCK_BYTES = 4 << 20  # a multiple of every width; bounds what one block can make a reader allocate
WIDTHS = (1, 2, 4)
LEVEL = 1  # on real states the best ratio as well as the fastest: docs/format.md, section 8
_HEAD = struct.Struct("<8sQ32s")  # magic, raw size, raw digest
_BLOCK = struct.Struct("<BI")  # element width, bytes of the zstd frame that follows
_PROBE_BYTES = 256 << 10
_WORKERS = min(4, os.cpu_count() or 1)


@dataclass(frozen=True)
class Measured:
    """What one method did to all given buffers together. Speeds in GB (10^9 raw bytes) a second."""

    method: str
    raw_bytes: int
    stored_bytes: int
    ratio: float
    compress_gb_s: float
    decompress_gb_s: float


def compress(data: Buffer, *, level: int = LEVEL, width: int | None = None) -> bytes:
    """The compressed form of `data`. `width` forces the element width; by default each block's is found by trying.

    Not canonical: another zstd may give other bytes. What names the content is the digest of the raw bytes.
    """
    raw = memoryview(data).cast("B")
    with ThreadPoolExecutor(_WORKERS) as pool:
        blocks = list(pool.map(lambda block: _pack(block, level, width), _blocks(raw)))
    return b"".join((_HEAD.pack(MAGIC, raw.nbytes, bytes.fromhex(digest_bytes(raw).hex)), *blocks))


def decompress(data: Buffer, expected_size: int, expected_digest: Digest) -> bytearray:
    """The raw bytes, in memory of their own (writable, so that tensors can be built on them).

    Raises `FormatError` for anything but a well-formed blob that declares exactly this size and digest, before
    anything is unpacked, and `DigestMismatch` if the unpacked bytes are others. Never allocates more than
    `expected_size` and a block per thread: a frame that would give more is refused by its own header.
    """
    view = memoryview(data).cast("B")
    if view.nbytes < _HEAD.size:
        raise FormatError("a compressed blob is cut short")
    magic, size, digest = _HEAD.unpack(view[: _HEAD.size])
    if magic != MAGIC:
        raise FormatError("not a compressed blob")
    if size != expected_size or digest.hex() != expected_digest.hex:
        raise FormatError(f"the compressed blob declares {size} bytes of blake3:{digest.hex()}, not what was expected")
    frames = _frames(view[_HEAD.size :], expected_size)
    raw = bytearray(expected_size)
    target = memoryview(raw)
    with ThreadPoolExecutor(_WORKERS) as pool:
        list(pool.map(lambda frame: _unpack(frame, target), frames))
    found = digest_bytes(target)
    target.release()
    if found != expected_digest:
        raise DigestMismatch(f"unpacked content is {found}, expected {expected_digest}")
    return raw


def measure(buffers: Sequence[Buffer], levels: Sequence[int] = (1, 3, 9), rounds: int = 1) -> list[Measured]:
    """Plain zstd against byte planes of 2 and of 4 bytes and against the choice by trying, at several levels.

    Each result is unpacked and compared. The times are those of `compress` and `decompress`, digests included, the
    best of `rounds` for each buffer.
    """
    kinds: dict[str, int | None] = {"plain": 1, "planes of 2": 2, "planes of 4": 4, "chosen": None}
    return [_measure(f"{kind}, level {n}", buffers, n, width, rounds) for n in levels for kind, width in kinds.items()]


def _measure(method: str, buffers: Sequence[Buffer], level: int, width: int | None, rounds: int) -> Measured:
    raw = stored = 0
    packing = unpacking = 0.0
    for data in buffers:
        view = memoryview(data).cast("B")
        digest = digest_bytes(view)
        packed = compress(view, level=level, width=width)
        packing += _fastest(rounds, partial(compress, view, level=level, width=width))
        unpacking += _fastest(rounds, partial(decompress, packed, view.nbytes, digest))
        raw += view.nbytes
        stored += len(packed)
    return Measured(method, raw, stored, raw / max(stored, 1), raw / 1e9 / packing, raw / 1e9 / unpacking)


def _fastest(rounds: int, work: Callable[[], object]) -> float:
    """Seconds."""
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def _blocks(raw: memoryview) -> Iterator[memoryview]:
    for start in range(0, raw.nbytes, BLOCK_BYTES):
        yield raw[start : start + BLOCK_BYTES]


def _pack(block: memoryview, level: int, width: int | None) -> bytes:
    if width is None:
        probe = block[: min(block.nbytes, _PROBE_BYTES)]
        quick = zstandard.ZstdCompressor(level=1)
        width = min(WIDTHS, key=lambda candidate: len(quick.compress(_split(probe, candidate))))
    packer = zstandard.ZstdCompressor(level=level, write_checksum=False, write_content_size=True)
    frame = packer.compress(_split(block, width))
    return _BLOCK.pack(width, len(frame)) + frame


def _split(block: memoryview, width: int) -> bytes | memoryview:
    """All first bytes of the elements, then all second ones, ...; what is left over at the end stays as it is."""
    if width == 1:
        return block
    whole = block.nbytes - block.nbytes % width
    planes = np.frombuffer(block[:whole], np.uint8).reshape(-1, width).T
    return planes.tobytes() + bytes(block[whole:])


@dataclass(frozen=True)
class _Frame:
    """One block: its zstd frame, and the raw bytes [start, start + length) that it stands for."""

    width: int
    frame: memoryview
    start: int
    length: int


def _frames(view: memoryview, size: int) -> list[_Frame]:
    """The blocks in order; the whole framing is checked before anything is unpacked."""
    found = []
    at = 0
    for start in range(0, size, BLOCK_BYTES):
        if view.nbytes - at < _BLOCK.size:
            raise FormatError("a compressed blob is cut short")
        width, length = _BLOCK.unpack(view[at : at + _BLOCK.size])
        at += _BLOCK.size
        if width not in WIDTHS or length > view.nbytes - at:
            raise FormatError("a block of a compressed blob has an impossible width or length")
        found.append(_Frame(width, view[at : at + length], start, min(BLOCK_BYTES, size - start)))
        at += length
    if at != view.nbytes:
        raise FormatError("bytes follow the last block of a compressed blob")
    return found


def _unpack(block: _Frame, target: memoryview) -> None:
    start, length, width = block.start, block.length, block.width
    try:
        # The library allocates what a frame declares, whatever limit it is given: look first.
        if zstandard.frame_content_size(block.frame) != length:
            raise FormatError("a block of a compressed blob does not declare its size")
        unpacker = zstandard.ZstdDecompressor()
        flat = unpacker.decompress(block.frame, max_output_size=length, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise FormatError(f"a block of a compressed blob cannot be unpacked: {error}") from error
    if len(flat) != length:
        raise FormatError("a block of a compressed blob has another size than it declares")
    count = length // width
    planes, into = np.frombuffer(flat, np.uint8), np.frombuffer(target, np.uint8, count * width, start)
    for plane in range(width):
        into[plane::width] = planes[plane * count : (plane + 1) * count]
    target[start + count * width : start + length] = flat[count * width :]
