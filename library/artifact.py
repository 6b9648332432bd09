"""The artifact file: canonical safetensors with one manifest. One byte sequence for one artifact, and no other.

Knows the framing (docs/format.md is its specification). Does no file I/O, and does not know what the tensors mean
(core/state.py) or where blobs live (library/blobs.py). Whoever verifies must parse the very buffer that was hashed,
therefore `decode` takes bytes in memory and never a path.
"""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from types import MappingProxyType
from typing import Any

from library.digest import Digest, canonical_json, digest_bytes, digest_chunks
from library.errors import DigestMismatch, FormatError, UsageError
from library.manifest import Manifest, encode_manifest, parse_manifest, strict_json

METADATA = "__metadata__"
MANIFEST_KEY = "scion"
ALIGNMENT = 64  # of the first tensor byte: a cache line, and a multiple of every element size
MAX_HEADER_BYTES = 16 << 20
MAX_TENSORS = 8192
MAX_BRACKETS = 500_000  # "[" and "{" in a header: bounds the memory that parsing hostile JSON can take
MAX_RANK = 8
ITEM_SIZES: Mapping[str, int] = MappingProxyType(
    {"BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1}
    | {"U16": 2, "I16": 2, "F16": 2, "BF16": 2, "U32": 4, "I32": 4, "F32": 4, "U64": 8, "I64": 8, "F64": 8}
)
Buffer = bytes | bytearray | memoryview
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,127}", re.ASCII)
_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True)
class TensorData:
    """One tensor. `dtype` is a safetensors name (a key of `ITEM_SIZES`), `data` its bytes in C order, little-endian.

    Out of `decode`, `data` is a view into the decoded buffer: writable exactly if that buffer is (torch.frombuffer
    warns about read-only memory), and aligned to the element size if the buffer starts at a multiple of 8.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    data: memoryview


@dataclass(frozen=True)
class Artifact:
    """A decoded artifact. `digest` is that of the buffer; `tensors` keeps the order of the file and copies nothing."""

    digest: Digest
    manifest: Manifest
    tensors: Mapping[str, TensorData]


@dataclass(frozen=True)
class Encoded:
    """An artifact ready to be written: `header`, then `chunks` (views of the caller's tensors) in order.

    `digest` and `size` (bytes) are those of the whole file.
    """

    header: bytes
    chunks: tuple[memoryview, ...]
    digest: Digest
    size: int

    def parts(self) -> Iterator[memoryview]:
        """The file's bytes as a stream, without a copy of the tensors."""
        yield memoryview(self.header)
        yield from self.chunks

    def to_bytes(self) -> bytes:
        """The file's bytes in one piece: a copy."""
        return b"".join(self.parts())


def tensor_digests(tensors: Sequence[TensorData]) -> dict[str, str]:
    """The digest of each tensor's bytes by name, as `Manifest.tensors` wants it. Raises `FormatError` on duplicates."""
    digests = {tensor.name: str(digest_bytes(_flat(tensor.data))) for tensor in tensors}
    if len(digests) != len(tensors):
        raise FormatError("two tensors have the same name")
    return digests


def encode(manifest: Manifest, tensors: Sequence[TensorData]) -> Encoded:
    """The one file for this manifest and these tensors, whatever their order. Keeps views, copies no tensor.

    Raises `FormatError` when the tensors are not what the manifest says, and for everything that `decode` refuses:
    nothing can be written that could not be read.
    """
    ordered = sorted(tensors, key=_order)
    chunks = tuple(_flat(tensor.data) for tensor in ordered)
    _check_digests(manifest, tensor_digests(ordered))
    entries: list[_Entry] = []
    end = 0
    for tensor, chunk in zip(ordered, chunks, strict=True):
        _check_name(tensor.name)  # here, because the key of the metadata would vanish under the manifest
        entries.append(_Entry(tensor.name, tensor.dtype, tuple(tensor.shape), end, end := end + chunk.nbytes))
    header = _frame(encode_manifest(manifest), entries)
    _parse(header, len(header) + end)
    for entry, chunk in zip(entries, chunks, strict=True):
        _check_values(entry, chunk)
    return Encoded(header, chunks, digest_chunks((header, *chunks)), len(header) + end)


def decode(buffer: Buffer, expected: Digest | None = None, *, verify_tensors: bool = True) -> Artifact:
    """The artifact in `buffer`, which holds the whole file. Reads it in place; the result keeps it alive.

    The content digest is computed of this buffer and compared with `expected` before anything is parsed
    (`DigestMismatch`). Then every rule of docs/format.md is checked (`FormatError`).

    `verify_tensors=False` leaves out the per-tensor digests. They are for naming the damaged tensor and for the
    replay audit, and they are checked when a file is made or first admitted. A file that has the content digest of
    an admitted file has its very bytes, so a graft need not hash them twice; without `expected` there is no such
    file to refer to, and the combination is a `UsageError`.
    """
    if not verify_tensors and expected is None:
        raise UsageError("leaving out the tensor digests is sound only against an expected content digest")
    view = _flat(memoryview(buffer))
    digest = digest_bytes(view)
    if expected is not None and digest != expected:
        raise DigestMismatch(f"content is {digest}, expected {expected}")
    artifact = decode_verified(buffer, digest)
    if verify_tensors:
        _check_digests(artifact.manifest, tensor_digests(list(artifact.tensors.values())))
    return artifact


def decode_verified(buffer: Buffer, digest: Digest) -> Artifact:
    """As `decode`, for a caller who hashed this very buffer to `digest` and holds it: a graft hashes its bytes once."""
    view = _flat(memoryview(buffer))
    if isinstance(view.obj, mmap.mmap):
        raise UsageError("a memory-mapped file can change after it was verified: read it into memory first")
    start = header_size(view)
    manifest, entries = _parse(view[:start], view.nbytes)
    tensors: dict[str, TensorData] = {}
    for entry in entries:
        data = view[start + entry.begin : start + entry.end]
        _check_values(entry, data)
        tensors[entry.name] = TensorData(entry.name, entry.dtype, entry.shape, data)
    return Artifact(digest, manifest, MappingProxyType(tensors))


def header_size(prefix: Buffer) -> int:
    """How many bytes of a file come before its tensors, from its first 8 bytes. Raises `FormatError`."""
    view = memoryview(prefix)
    if view.nbytes < _LENGTH.size:
        raise FormatError(f"a file of {view.nbytes} bytes is not an artifact")
    (length,) = _LENGTH.unpack(view[: _LENGTH.size])
    if length > MAX_HEADER_BYTES:
        raise FormatError(f"a header of {length} bytes is larger than the {MAX_HEADER_BYTES} allowed")
    return _LENGTH.size + int(length)


def decode_header(prefix: Buffer) -> Manifest:
    """The manifest from the first `header_size` bytes of a file (more are ignored). Proves nothing about the tensors.

    For listings: neither the content digest nor the file's length is checked. Raises `FormatError`.
    """
    view = _flat(memoryview(prefix))
    return _parse(view[: header_size(view)], None)[0]


@dataclass(frozen=True)
class _Entry:
    """One tensor's place: bytes [begin, end) after the header."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


def _flat(data: memoryview) -> memoryview:
    if not data.c_contiguous:
        raise UsageError("a buffer is not contiguous in C order")
    return data.cast("B") if data.nbytes else memoryview(b"")


def _order(item: TensorData | _Entry) -> tuple[int, str]:
    # Wide elements first: with an aligned start and no holes, each tensor then starts at a multiple of its own
    # element size, so that readers can use views.
    return -ITEM_SIZES.get(item.dtype, 0), item.name


def _frame(manifest: bytes, entries: Sequence[_Entry]) -> bytes:
    """The length, the header and its padding: all bytes before the tensors."""
    header: dict[str, Any] = {
        entry.name: {"dtype": entry.dtype, "shape": list(entry.shape), "data_offsets": [entry.begin, entry.end]}
        for entry in entries
    }
    header[METADATA] = {MANIFEST_KEY: manifest.decode("utf-8")}
    text = canonical_json(header)
    padded = text + b" " * (-(_LENGTH.size + len(text)) % ALIGNMENT)
    return _LENGTH.pack(len(padded)) + padded


def _parse(head: Buffer, total: int | None) -> tuple[Manifest, list[_Entry]]:
    """Manifest and places from the `header_size` bytes before the tensors, of a file of `total` bytes if known."""
    start = header_size(head)
    if memoryview(head).nbytes < start:
        raise FormatError(f"the header of {start} bytes is cut short")
    raw = bytes(memoryview(head)[:start])
    if raw.count(b"[") + raw.count(b"{") > MAX_BRACKETS:
        raise FormatError(f"more than {MAX_BRACKETS} brackets in the header")
    header = strict_json(raw[_LENGTH.size :].rstrip(b" "))
    match header:
        case {"__metadata__": {"scion": str(text)}}:
            del header[METADATA]
        case _:
            raise FormatError(f"the header has no {METADATA} with the key {MANIFEST_KEY!r}")
    if len(header) > MAX_TENSORS:
        raise FormatError(f"more than {MAX_TENSORS} tensors")
    entries = sorted((_entry(name, value) for name, value in header.items()), key=_order)
    end = 0
    for entry in entries:
        if entry.begin != end:
            raise FormatError(f"tensor {entry.name!r} starts at {entry.begin}, not at {end}: hole, overlap or order")
        end = entry.end
    if total is not None and start + end != total:
        raise FormatError(f"the header describes {start + end} bytes, the file has {total}")
    manifest = text.encode("utf-8")
    parsed = parse_manifest(manifest)
    # The one rule that covers all others, such as the padding and further keys in the metadata.
    if _frame(manifest, entries) != raw:
        raise FormatError("the header is not in its canonical form")
    if set(parsed.tensors) != {entry.name for entry in entries}:
        raise FormatError("the manifest names other tensors than the file has")
    return parsed, entries


def _entry(name: str, value: Any) -> _Entry:
    match value:
        case {"dtype": str(dtype), "shape": list(shape), "data_offsets": [int(begin), int(end)]} if len(value) == 3:
            pass
        case _:
            raise FormatError(f"tensor {name[:80]!r} is not described by dtype, shape and data_offsets")
    _check_name(name)
    if dtype not in ITEM_SIZES:
        raise FormatError(f"tensor {name!r} has an unknown dtype: {dtype[:40]!r}")
    if len(shape) > MAX_RANK or any(type(length) is not int or length < 0 for length in shape):
        raise FormatError(f"tensor {name!r} has an impossible shape")
    if type(begin) is not int or type(end) is not int or end - begin != prod(shape) * ITEM_SIZES[dtype]:
        raise FormatError(f"tensor {name!r} has offsets that do not fit its shape and dtype")
    return _Entry(name, dtype, tuple(shape), begin, end)


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise FormatError(f"not a tensor name: {name[:80]!r}")


def _check_values(entry: _Entry, data: memoryview) -> None:
    """A truth value other than 0 and 1 is undefined behaviour in more than one program that would read it."""
    if entry.dtype == "BOOL" and bytes(data).translate(None, b"\x00\x01"):
        raise FormatError(f"tensor {entry.name!r} has truth values other than 0 and 1")


def _check_digests(manifest: Manifest, found: Mapping[str, str]) -> None:
    if set(found) != set(manifest.tensors):
        odd = sorted(set(found) ^ set(manifest.tensors))
        raise FormatError(f"the manifest names other tensors than there are: {odd[0][:80]!r}")
    for name, digest in found.items():
        if digest != manifest.tensors[name]:
            raise DigestMismatch(f"tensor {name!r} is {digest}, the manifest says {manifest.tensors[name]}")
