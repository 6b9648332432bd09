"""Row 13: writers on one library are killed at random moments, again and again; nothing acknowledged may be lost.

Run as `python -m tests.faults.kill9 ROUNDS [SEED]`. Each round starts two writers in processes of their own, kills
each with SIGKILL after a random time, then opens the library and checks everything that either had acknowledged. The
cost of a check grows with the library: every `ROUNDS_A_LIBRARY` rounds the old one is read whole and a new one begun.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path

from library.check import check
from library.errors import LibraryBusy
from library.gc import collect
from library.store import Library
from tests.library.stores import deposit, key_of, state_of

SIZE = 20_000
LONGEST_SECONDS = 0.8
ROUNDS_A_LIBRARY = 100
SPARED = 60  # acknowledged deposits that are read back in full after each round


def write_for_ever(root: Path, acknowledged: Path, name: str, ready: Connection) -> None:
    """Deposits, revokes and collects until killed; a line `+text` or `-text` is written once it is acknowledged."""
    number = 0
    with Library.open(root) as library, acknowledged.open("a", encoding="utf-8", buffering=1) as out:
        ready.send("ready")
        while True:
            number += 1
            text = f"problem {name} {number} {os.getpid()} {time.time_ns()}"
            digest = deposit(library, text, SIZE).digest
            out.write(f"+{text}\n")
            if number % 3 == 0:
                library.revoke(digest, reason="every third", actor=name)
                out.write(f"-{text}\n")
            if number % 4 == 0:
                try:
                    collect(library, timeout=0.1)
                except LibraryBusy:
                    continue


def verify(root: Path, lists: list[Path], recent: int) -> tuple[int, int]:
    """Asserts that the library is whole; returns the numbers of acknowledged deposits and revocations."""
    kept: dict[str, None] = {}
    revoked: dict[str, None] = {}
    for path in lists:
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
            (kept if line[0] == "+" else revoked)[line[1:]] = None
    with Library.open(root) as library:
        library.interrupt_jobs()
        report = check(library)
        assert report.damage == (), report.damage
        sample = list(kept)[-recent:] + random.sample(list(kept), min(recent, len(kept)))
        for text in dict.fromkeys(sample):
            row = library.artifact(str(state_of(text, SIZE).digest))
            assert row.canonical_key == key_of(text)
            if row.state == "published":
                assert bytes(library.read_blob(row.digest)) == state_of(text, SIZE).data
            assert row.state == "revoked" if text in revoked else row.state in ("published", "revoked"), row.state
    return len(kept), len(revoked)


def run(rounds: int, seed: int = 0) -> str:
    draw = random.Random(seed)
    context = multiprocessing.get_context("forkserver")  # processes of their own, without a second of imports each
    context.set_forkserver_preload(["tests.library.stores", "library.check", "library.gc", "pytest"])
    started = time.monotonic()
    deposits = revocations = 0
    for begun in range(0, rounds, ROUNDS_A_LIBRARY):
        kept, revoked = _one_library(context, min(ROUNDS_A_LIBRARY, rounds - begun), draw)
        deposits, revocations = deposits + kept, revocations + revoked
    return (
        f"{2 * rounds} writers killed, {deposits} deposits and {revocations} revocations acknowledged, "
        f"0 lost, 0 dangling rows, {time.monotonic() - started:.0f} s"
    )


def _one_library(context: ForkServerContext, rounds: int, draw: random.Random) -> tuple[int, int]:
    """So many rounds on a library of their own; the numbers of acknowledged deposits and revocations."""
    counts = (0, 0)
    with tempfile.TemporaryDirectory(prefix="kill9-") as folder:
        root, lists = Path(folder) / "lib", [Path(folder) / "a.txt", Path(folder) / "b.txt"]
        Library.open(root).close()
        for _ in range(rounds):
            writers = [_started(context, root, path) for path in lists]
            for _, here in writers:
                assert here.recv() == "ready", "a writer could not open the library"
                here.close()
            for writer, _ in draw.sample(writers, 2):
                time.sleep(draw.uniform(0, LONGEST_SECONDS / 2))
                writer.kill()
            for writer, _ in writers:
                writer.join()
                assert writer.exitcode == -signal.SIGKILL, f"a writer ended by itself with {writer.exitcode}"
                writer.close()
            counts = verify(root, lists, SPARED)
        with Library.open(root) as library:
            collect(library, grace=0, revoked_grace=0)
            report = check(library, read_data=True, grace=0)
            assert report.findings == (), report.findings
    return counts


def _started(context: ForkServerContext, root: Path, path: Path) -> tuple[ForkServerProcess, Connection]:
    here, there = context.Pipe(duplex=False)
    writer = context.Process(target=write_for_ever, args=(root, path, path.stem, there), daemon=True)
    writer.start()
    there.close()
    return writer, here


if __name__ == "__main__":
    from tests.faults import kill9

    print(kill9.run(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0))
