"""Compares the library's compression of cold states with blosc2 and zipnn, on artifacts of a library.

    pip install blosc2 zipnn            # into an environment of its own, beside requirements.txt
    PYTHONPATH=. python docs/compare_compression.py LIBRARY [ROUNDS]

Prints one Markdown row a method for the largest published artifact of each model and dtype: the ratio, and GB/s of raw
bytes, the best of ROUNDS (5) on one thread of every library, without hashing. Each result is unpacked and compared.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import blosc2
import zipnn

from library import compression
from library.artifact import decode
from library.digest import Digest, digest_bytes
from library.search import list_artifacts
from library.store import Library

THREADS = min(4, os.cpu_count() or 1)  # as library/compression.py takes
Codec = tuple[str, Callable[[bytes], bytes], Callable[[bytes], bytes]]


def codecs(raw: bytes, width: int) -> Iterator[Codec]:
    """Name, packing and unpacking of each method for elements of `width` bytes."""
    digest = digest_bytes(raw)
    yield (
        "byte planes + zstd level 1 (this library)",
        lambda data: compression.compress(data, width=width),
        lambda data: bytes(compression.decompress(data, len(raw), digest)),
    )
    for name, codec, filter_ in (
        ("shuffle + zstd", blosc2.Codec.ZSTD, blosc2.Filter.SHUFFLE),
        ("bitshuffle + zstd", blosc2.Codec.ZSTD, blosc2.Filter.BITSHUFFLE),
        ("shuffle + lz4", blosc2.Codec.LZ4, blosc2.Filter.SHUFFLE),
    ):
        options = {
            "typesize": width,
            "clevel": 1,
            "codec": codec,
            "filters": [filter_],
            "filters_meta": [0],
            "nthreads": THREADS,
        }
        yield f"blosc2 {name} level 1", lambda data, o=options: blosc2.compress2(data, **o), blosc2.decompress2  # type: ignore[misc]
    dtype = {2: "bfloat16", 4: "float32"}[width]
    znn = zipnn.ZipNN(input_format="byte", bytearray_dtype=dtype, threads=THREADS)
    yield "zipnn", lambda data: bytes(znn.compress(bytearray(data))), lambda data: bytes(znn.decompress(data))


def fastest(rounds: int, work: Callable[[], bytes]) -> tuple[float, bytes]:
    best, result = float("inf"), b""
    for _ in range(rounds):
        begun = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - begun)
    return best, result


def main(folder: Path, rounds: int) -> None:
    largest = {}
    for record in sorted(list_artifacts(folder, states=["published"], limit=100_000), key=lambda r: r.size_bytes):
        largest[record.model, record.identity] = record
    print("| state | method | ratio | compress, GB/s | decompress, GB/s |\n|---|---|---|---|---|")
    with Library.open(folder, create=False) as library:
        for record in largest.values():
            raw = bytes(library.read_blob(record.digest))
            dtypes = {tensor.dtype for tensor in decode(raw, Digest.parse(record.digest)).tensors.values()}
            width = 4 if "F32" in dtypes else 2
            label = f"{record.model}, {'fp32' if width == 4 else 'bf16'}, {len(raw) / 1e6:.0f} MB"
            for name, pack, unpack in codecs(raw, width):
                slow, packed = fastest(rounds, partial(pack, raw))
                quick, back = fastest(rounds, partial(unpack, packed))
                assert bytes(back) == raw, f"{name} is not lossless"
                figures = f"{len(raw) / len(packed):.3f} | {len(raw) / slow / 1e9:.2f} | {len(raw) / quick / 1e9:.2f}"
                print(f"| {label} | {name} | {figures} |", flush=True)
                label = ""


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 5)
