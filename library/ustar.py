"""The strictest subset of tar (POSIX ustar) as a stream: plain files, in one fixed form, and nothing after the end.

Knows member names, sizes and bytes; not what they mean. A header is read by encoding it again: what is not exactly
what the writer makes of a name and a size (links, devices, folders, owners, times, extensions, other spellings of a
number) is refused as a whole. Any tar program can list such a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Protocol

from blake3 import blake3

from library.digest import Digest
from library.errors import DigestMismatch, FormatError, StoreError

BLOCK = 512
MAX_MEMBER_BYTES = 8**11 - 1  # eleven octal digits
_CHUNK = 1 << 20
_NAME = re.compile(r"[a-z0-9][a-z0-9.\-]*(/[a-z0-9][a-z0-9.\-]*)?", re.ASCII)
_SIZE = slice(124, 135)
Buffer = bytes | bytearray | memoryview


class Writable(Protocol):
    """A binary stream open for writing."""

    def write(self, data: Buffer, /) -> object: ...


class Readable(Protocol):
    """A binary stream open for reading; need not be seekable."""

    def read(self, size: int, /) -> bytes: ...


def header(name: str, size: int) -> bytes:
    """The one header of a member. Raises `FormatError` for a name or size that has none."""
    if not _NAME.fullmatch(name) or len(name) > 100:
        raise FormatError(f"not a member name: {name[:120]!r}")
    if not 0 <= size <= MAX_MEMBER_BYTES:
        raise FormatError(f"member {name} of {size} bytes is larger than {MAX_MEMBER_BYTES}")
    front = name.encode("ascii").ljust(100, b"\0") + b"0000644\0" + b"0000000\0" * 2 + b"%011o\0" % size + b"0" * 11
    back = b"0".ljust(101, b"\0") + b"ustar\x0000" + bytes(64) + b"0000000\0" * 2
    plain = (front + b"\0" + b" " * 8 + back).ljust(BLOCK, b"\0")
    return plain[:148] + b"%06o\0 " % sum(plain) + plain[156:]


def write_member(stream: Writable, name: str, size: int, chunks: Iterable[Buffer], expected: Digest) -> None:
    """One member. Raises `DigestMismatch` if the chunks are not `size` bytes of that digest: the stream is then
    worthless. Never writes more than `size`."""
    stream.write(header(name, size))
    hasher, left = blake3(max_threads=blake3.AUTO), size
    for chunk in chunks:
        view = memoryview(chunk).cast("B")
        left -= view.nbytes
        if left < 0:
            break
        hasher.update(view)
        stream.write(view)
    if left or hasher.hexdigest() != expected.hex:
        raise DigestMismatch(f"the bytes for member {name} are not {size} bytes of {expected}")
    stream.write(bytes(-size % BLOCK))


def write_end(stream: Writable) -> None:
    stream.write(bytes(2 * BLOCK))


class Reader:
    """Members in turn: `next` gives name and size, then `body` must take the bytes. Raises `FormatError`."""

    def __init__(self, stream: Readable) -> None:
        self._stream = stream

    def next(self) -> tuple[str, int] | None:
        """Name and size of the next member; None at the end, after which nothing may follow."""
        block = bytes(self._take(BLOCK))
        if not any(block):
            if any(self._take(BLOCK)) or self._stream.read(1):
                raise FormatError("something follows the end of the bundle")
            return None
        name = block[:100].rstrip(b"\0").decode("ascii", "replace")
        digits = block[_SIZE]
        if not re.fullmatch(rb"[0-7]{11}", digits) or header(name, int(digits, 8)) != block:
            raise FormatError(f"member {name[:100]!r} is not a plain file in the bundle's form")
        return name, int(digits, 8)

    def body(self, size: int, limit: int) -> bytearray:
        """The `size` bytes of the member. Memory grows with what arrives, not with what was declared. `StoreError`
        if they would be more than `limit`."""
        if size > limit:
            raise StoreError(f"a member of {size} bytes is larger than the {limit} that this import allows")
        data = self._take(size)
        if any(self._take(-size % BLOCK)):
            raise FormatError("the padding of a member is not empty")
        return data

    def _take(self, size: int) -> bytearray:
        data = bytearray()
        while len(data) < size:
            chunk = self._stream.read(min(_CHUNK, size - len(data)))
            if not chunk:
                raise FormatError("the bundle is cut short")
            data += chunk
        return data
