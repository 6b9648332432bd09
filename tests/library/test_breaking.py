"""Attempts to break the store: ways round acceptance, states without bytes, races of two processes, odd files."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from library.artifact import decode, encode
from library.blobs import blob_path, packed_path
from library.check import check
from library.digest import Digest
from library.errors import Conflict, CorruptError, NotFound, ScionError, StorageFull, UsageError
from library.exchange import export_bundle, import_bundle, preview_bundle
from library.gc import collect
from library.store import Library
from tests.library.artifacts import manifest, tensors
from tests.library.stores import approved, deposit, record_of, state_of

SIZE = 500


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library.open(tmp_path / "lib", actor="ada") as opened:
        yield opened


@pytest.fixture
def second(library: Library) -> Iterator[Library]:
    """The same library in another process's shoes: its own connections and locks."""
    with Library.open(library.root, actor="bob") as opened:
        yield opened


def imported(library: Library, text: str = "one") -> str:
    return library.land_import(state_of(text, SIZE), record_of(text), origin="bundle", actor="bob").digest


def real(library: Library, text: str) -> str:
    """A deposit of a real artifact file, as bundles need it."""
    encoded = encode(manifest(problem=text), tensors())
    return library.publish(approved(library, text), encoded, record_of(text)).digest


def keyed(text: str) -> tuple[str, int]:
    return "blake3:" + "3" * 64, 1


def whole(library: Library) -> None:
    assert check(library, read_data=True, grace=0).findings == ()
    assert library.verify_log() is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("imported", "held"),  # and released: published without an acceptance
        ("imported", "published"),
        ("imported", "evicted"),
        ("evicted", "held"),
        ("evicted", "published"),
        ("evicted", "imported"),
        ("published", "imported"),
        ("published", "revoked"),  # without a reason that is checked
        ("published", "nonsense"),
        ("held", "evicted"),
        ("held", "imported"),
    ],
)
def test_no_state_is_reached_by_a_side_door(library: Library, before: str, after: str) -> None:
    digest = imported(library) if before == "imported" else deposit(library, "one", SIZE).digest
    if before == "evicted":
        library.drop([digest])
    elif before == "held":
        library.hold(digest, "odd", "gate")
    entries = len(library.log(1000))
    with pytest.raises(Conflict, match=f"is {before}"):
        library.set_artifact_state(digest, after, "because", "eve")
    assert library.artifact(digest).state == before
    assert len(library.log(1000)) == entries
    whole(library)


def test_what_lost_its_bytes_is_not_accepted(library: Library) -> None:
    digests = [imported(library, text) for text in ("one", "two")]
    (library.root / blob_path(Digest.parse(digests[1]))).unlink()
    with pytest.raises(Conflict, match="lost its bytes"):
        library.accept_import(digests, "ada")
    assert {library.artifact(digest).state for digest in digests} == {"imported"}  # all or none


@pytest.mark.parametrize("kind", ["fifo", "folder", "device", "socket"])
def test_a_bundle_must_be_a_plain_file(library: Library, tmp_path: Path, kind: str) -> None:
    import socket

    path = tmp_path / "bundle"
    listener = None
    if kind == "fifo":
        os.mkfifo(path)  # opening it for reading waits for a writer that never comes
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path = Path("/dev/zero")
    else:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
    found: list[BaseException] = []

    def read() -> None:
        try:
            preview_bundle(library, path)
        except ScionError as error:
            found.append(error)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive(), "reading it never ends"
    assert isinstance(found[0], UsageError | NotFound)
    if listener is not None:
        listener.close()


def test_a_bundle_gives_back_lost_and_evicted_bytes_and_nothing_else(library: Library, tmp_path: Path) -> None:
    digests = [real(library, text) for text in ("evicted", "missing", "revoked", "whole")]
    export_bundle(library, tmp_path / "all.bundle", digests)
    library.drop(digests[:1])
    (library.root / blob_path(Digest.parse(digests[1]))).unlink()
    library.revoke(digests[2], reason="wrong", actor="ada")
    preview = preview_bundle(library, tmp_path / "all.bundle")
    by_digest = {item.digest: item.status for item in preview.incoming}
    assert [by_digest[digest] for digest in digests] == ["evicted", "missing", "revoked", "published"]
    assert library.artifact(digests[0]).state == "evicted"  # a preview changes nothing
    assert import_bundle(library, tmp_path / "all.bundle", keyed, actor="ada") == ()
    assert [library.artifact(d).state for d in digests] == ["published", "published", "revoked", "published"]
    for digest in (digests[0], digests[1], digests[3]):
        assert (
            decode(library.read_blob(digest), Digest.parse(digest)).manifest
            == decode(library.read_blob(digest)).manifest
        )
    whole(library)


def test_an_eviction_keeps_the_manifest_and_only_once(library: Library) -> None:
    digest = real(library, "one")
    written = decode(library.read_blob(digest)).manifest
    for _ in range(2):
        library.drop([digest])
        assert library.kept_manifest(digest) == written
        library.put_back(encode(written, tensors()))
    assert len(library.index.query("SELECT 1 FROM measurement WHERE artifact = ?", (digest,))) == 1
    whole(library)


def test_a_damaged_blob_can_be_evicted_and_has_no_manifest(library: Library) -> None:
    digest = real(library, "one")
    path = library.root / blob_path(Digest.parse(digest))
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    library.drop([digest])
    assert library.kept_manifest(digest) is None
    assert not library.blobs.has(Digest.parse(digest))


def test_pins_hold_against_the_quota_and_by_name(library: Library, second: Library) -> None:
    kept, other = (deposit(library, text, SIZE).digest for text in ("one", "two"))
    second.pin(kept, "bob")
    with pytest.raises(Conflict, match="pinned"):
        library.drop([other, kept])
    assert library.artifact(other).state == "published"  # all or none
    assert library.evict(quota_bytes=SIZE) == [other]
    with pytest.raises(StorageFull):
        library.evict(quota_bytes=0)
    assert second.artifact(kept).state == "published"
    whole(second)


def test_a_pin_that_comes_while_room_is_made_holds(
    library: Library, second: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between choosing what goes and letting it go, another process pins one and revokes another."""
    pinned, revoked, gone = (deposit(library, text, SIZE).digest for text in ("one", "two", "three"))
    keep = library._manifest_to_keep

    def slow(row: Any) -> str | None:
        if row.digest == pinned:
            second.pin(pinned, "bob")
            second.revoke(revoked, reason="wrong", actor="bob")
        return keep(row)

    monkeypatch.setattr(library, "_manifest_to_keep", slow)
    assert library.evict(quota_bytes=0) == [gone]
    assert [second.artifact(d).state for d in (pinned, revoked, gone)] == ["published", "revoked", "evicted"]
    assert bytes(second.read_blob(pinned)) == state_of("one", SIZE).data
    assert bytes(second.read_blob(revoked)) == state_of("two", SIZE).data  # kept for whoever looks into the case
    whole(library)


def test_a_revocation_while_a_state_is_packed_wins(
    library: Library, second: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = deposit(library, "one", 5000).digest
    pack = library.blobs.pack

    def slow(*arguments: Any) -> int | None:
        size = pack(*arguments)
        second.revoke(digest, reason="wrong", actor="bob")
        return size

    monkeypatch.setattr(library.blobs, "pack", slow)
    with pytest.raises(Conflict, match="became revoked"):
        library.pack(digest)
    assert library.artifact(digest).state == "revoked"
    assert check(library, read_data=True, grace=0).damage == ()
    collect(library, grace=0, revoked_grace=0)
    assert not (library.root / packed_path(Digest.parse(digest))).exists()
    whole(library)


def test_a_revocation_while_bytes_are_put_back_wins(
    library: Library, second: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = deposit(library, "one", SIZE).digest
    library.drop([digest])
    put = library.blobs.put

    def slow(*arguments: Any) -> int:
        size = put(*arguments)
        second.revoke(digest, reason="wrong", actor="bob")
        return size

    monkeypatch.setattr(library.blobs, "put", slow)
    with pytest.raises(Conflict, match="revoked"):
        library.put_back(state_of("one", SIZE))
    assert library.artifact(digest).state == "revoked"
    assert check(library, read_data=True, grace=0).damage == ()


def test_two_processes_deposit_evict_and_collect_at_once(library: Library, second: Library) -> None:
    """Under a quota that holds three states: no acknowledged record is lost, none is published without its bytes."""
    faults: list[str] = []
    made: list[str] = []

    def work(mine: Library, name: str) -> None:
        mine.quota_bytes = 3 * SIZE + 100
        try:
            for number in range(8):
                made.append(deposit(mine, f"{name} {number}", SIZE).digest)
                if number % 3 == 0:
                    collect(mine, grace=0)
        except Exception as fault:
            faults.append(repr(fault))

    threads = [threading.Thread(target=work, args=(lib, name)) for lib, name in ((library, "a"), (second, "b"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert faults == []
    states = [library.artifact(digest).state for digest in made]
    assert (len(made), set(states)) == (16, {"published", "evicted"})
    assert states.count("published") <= 3
    assert library.used_bytes() <= 3 * SIZE + 100
    whole(library)


def test_a_staged_state_counts_when_it_is_staged(library: Library) -> None:
    """LMCache/LMCache#4725: a cap that only some writers keep is no cap."""
    library.quota_bytes = 2 * SIZE
    old = deposit(library, "one", SIZE).digest
    library.stage(state_of("two", SIZE))
    library.stage(state_of("two", SIZE))  # the same again takes no room
    assert library.artifact(old).state == "published"
    library.stage(state_of("three", SIZE))
    assert library.artifact(old).state == "evicted"
    with pytest.raises(StorageFull):
        library.stage(state_of("four", SIZE))
    assert library.used_bytes() == 2 * SIZE
    assert sorted(p.stat().st_size for p in (library.root / "staging").iterdir()) == [SIZE, SIZE]


def test_cold_packing_stops_when_the_quota_holds_and_passes_over_damage(library: Library) -> None:
    digests = [deposit(library, text, 5000).digest for text in ("one", "two", "three")]
    path = library.root / blob_path(Digest.parse(digests[0]))
    path.write_bytes(bytes(5000))
    before = library.used_bytes()
    assert library.pack_to(before) == []
    packed = library.pack_to(before - 1)
    assert packed == [digests[1]]  # the oldest was damaged, and is in quarantine now
    assert library.artifact(digests[0]).state == "quarantined"
    assert library.pack_cold("9999") == [digests[2]]


@pytest.mark.parametrize(
    "text", ["", "scion\n5\n", "scion\n-1\nAA==\n", "scion\n1e3\nAA==\n", "scion\n٣\nAA==\n", "a\n1\nAA==\n"]
)
def test_a_checkpoint_that_is_none_is_refused(library: Library, text: str) -> None:
    deposit(library, "one", SIZE)
    with pytest.raises(CorruptError):
        library.check_against(text)


def test_a_log_that_was_rolled_back_and_grew_again_is_found(library: Library, tmp_path: Path) -> None:
    import shutil

    deposit(library, "one", SIZE)
    library.close()
    shutil.copytree(library.root, tmp_path / "old")
    with Library.open(library.root) as again:
        deposit(again, "two", SIZE)
        kept = again.checkpoint("scion")
    with Library.open(tmp_path / "old") as old:
        for text in ("three", "four", "five"):
            deposit(old, text, SIZE)
        assert old.verify_log() is None  # a chain of its own, and whole
        found = old.check_against(kept)
        assert found is not None
        assert "rewritten" in found.reason
