"""The audit log: each entry commits to the one before, so that an edit, a gap or a new order shows.

Knows the chain and the checkpoint text. Does not know what the actions mean, and signs nothing (signing.py).
A log cut off at its end is still a whole chain: only a checkpoint kept elsewhere tells that it was longer.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from library.digest import Digest, canonical_json, digest_json
from library.errors import FormatError

GENESIS = "blake3:" + "0" * 64
Execute = Callable[[str, tuple[Any, ...]], Any]
_COLUMNS = "seq, created, actor, action, subject, detail, previous, digest"


@dataclass(frozen=True)
class Entry:
    seq: int
    created: str
    actor: str
    action: str
    subject: str
    detail: str
    previous: str
    digest: str

    def expected(self) -> str:
        """What `digest` must be for the other fields."""
        fields = {
            "seq": self.seq,
            "created": self.created,
            "actor": self.actor,
            "action": self.action,
            "subject": self.subject,
            "detail": self.detail,
            "previous": self.previous,
        }
        return str(digest_json(fields))


@dataclass(frozen=True)
class Finding:
    """The first entry that is not what it should be, and why."""

    seq: int
    reason: str


@dataclass(frozen=True)
class Checkpoint:
    """The state of a log at some time: `size` entries, the last of which has digest `root`."""

    origin: str
    size: int
    root: Digest

    def body(self) -> str:
        """The note text of C2SP tlog-checkpoint: origin, decimal size, base64 root, each on a line."""
        return f"{self.origin}\n{self.size}\n{base64.b64encode(bytes.fromhex(self.root.hex)).decode()}\n"


def now() -> str:
    """RFC 3339 UTC with microseconds: text that sorts by time."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def append(execute: Execute, *, actor: str, action: str, subject: str, detail: dict[str, Any]) -> Entry:
    """Adds one entry inside the caller's write transaction. `execute(sql, parameters)` returns a cursor."""
    last = execute("SELECT seq, digest FROM audit ORDER BY seq DESC LIMIT 1", ()).fetchone()
    seq, previous = (last[0] + 1, last[1]) if last else (1, GENESIS)
    text = canonical_json(detail).decode()
    entry = Entry(seq, now(), actor, action, subject, text, previous, "")
    entry = Entry(seq, entry.created, actor, action, subject, text, previous, entry.expected())
    values = (seq, entry.created, actor, action, subject, text, previous, entry.digest)
    execute(f"INSERT INTO audit ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
    return entry


def read(execute: Execute, *, limit: int = -1, offset: int = 0, newest_first: bool = False) -> Iterable[Entry]:
    order = "DESC" if newest_first else "ASC"
    rows = execute(f"SELECT {_COLUMNS} FROM audit ORDER BY seq {order} LIMIT ? OFFSET ?", (limit, offset))
    return (Entry(*row) for row in rows)


def verify(entries: Iterable[Entry]) -> Finding | None:
    """Walks the chain from its start and names the first bad entry, or None. Reads each entry once."""
    previous = GENESIS
    for seq, entry in enumerate(entries, start=1):
        if entry.seq != seq:
            return Finding(seq, f"entry {seq} is missing (the next one is {entry.seq})")
        if entry.previous != previous:
            return Finding(seq, "does not follow from the entry before it")
        try:
            expected = entry.expected()
        except FormatError as error:
            return Finding(seq, f"cannot be digested: {error}")
        if entry.digest != expected:
            return Finding(seq, "its content differs from its digest")
        previous = entry.digest
    return None


def checkpoint(execute: Execute, origin: str) -> Checkpoint:
    """The log's present size and root. An empty log has size 0 and an all-zero root."""
    if not origin or any(ord(character) < 0x20 or character == "+" for character in origin):
        raise FormatError(f"not an origin for a checkpoint: {origin[:80]!r}")
    last = execute("SELECT seq, digest FROM audit ORDER BY seq DESC LIMIT 1", ()).fetchone()
    seq, root = (last[0], last[1]) if last else (0, GENESIS)
    return Checkpoint(origin, seq, Digest.parse(root))


def parse_checkpoint(text: str) -> Checkpoint:
    """Reads a checkpoint's body, or a whole signed note (the signatures are not looked at). `FormatError`."""
    body = text.split("\n\n", 1)[0]
    lines = body.removesuffix("\n").split("\n")
    if len(lines) < 3 or not lines[0] or not lines[1].isascii() or not lines[1].isdigit():
        raise FormatError("not a checkpoint: it needs an origin, a size and a root, each on its own line")
    if len(lines[1]) > 18 or (len(lines[1]) > 1 and lines[1].startswith("0")):
        raise FormatError("not a checkpoint: its size is not a plain decimal number")
    try:
        root = base64.b64decode(lines[2], validate=True)
    except (binascii.Error, ValueError) as error:
        raise FormatError("not a checkpoint: its root is not base64") from error
    return Checkpoint(lines[0], int(lines[1]), Digest(root.hex()))


def against(execute: Execute, kept: Checkpoint) -> Finding | None:
    """Compares the log with a checkpoint kept elsewhere: None if the log has only grown since."""
    present = checkpoint(execute, kept.origin)
    if present.size < kept.size:
        return Finding(present.size + 1, f"the log was rolled back: it had {kept.size} entries, now {present.size}")
    if kept.size == 0:
        return None if str(kept.root) == GENESIS else Finding(1, "the checkpoint's root fits no empty log")
    row = execute("SELECT digest FROM audit WHERE seq = ?", (kept.size,)).fetchone()
    if row is None or row[0] != str(kept.root):
        return Finding(kept.size, "differs from the checkpoint: the log was rewritten")
    return None
