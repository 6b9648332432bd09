from __future__ import annotations

import base64
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from library import audit
from library.errors import FormatError
from library.sqlite import DATABASE
from library.store import Library
from tests.library.stores import deposit


@pytest.fixture
def chain() -> list[audit.Entry]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE audit (seq, created, actor, action, subject, detail, previous, digest)")
    for number in range(5):
        audit.append(connection.execute, actor="ada", action="a", subject=f"s{number}", detail={"n": number})
    entries = list(audit.read(connection.execute))
    connection.close()
    return entries


def test_chain_holds(chain: list[audit.Entry]) -> None:
    assert audit.verify(chain) is None
    assert [entry.seq for entry in chain] == [1, 2, 3, 4, 5]
    assert chain[0].previous == audit.GENESIS
    assert audit.verify([]) is None


@pytest.mark.parametrize("field", ["created", "actor", "action", "subject", "detail", "previous", "digest"])
@pytest.mark.parametrize("at", [0, 2, 4])
def test_any_edit_names_its_entry(chain: list[audit.Entry], field: str, at: int) -> None:
    value = "blake3:" + "7" * 64 if field in ("previous", "digest") else "other"
    chain[at] = replace(chain[at], **{field: value})
    found = audit.verify(chain)
    assert found is not None
    assert found.seq == at + 1


def test_edit_with_its_digest_recomputed_shows_in_the_next(chain: list[audit.Entry]) -> None:
    edited = replace(chain[1], actor="eve")
    chain[1] = replace(edited, digest=edited.expected())
    found = audit.verify(chain)
    assert found is not None
    assert found.seq == 3


@pytest.mark.parametrize(("change", "seq"), [("delete", 3), ("swap", 3), ("repeat", 4), ("cut the start", 1)])
def test_gaps_and_new_orders_show(chain: list[audit.Entry], change: str, seq: int) -> None:
    if change == "delete":
        del chain[2]
    elif change == "swap":
        chain[2], chain[3] = chain[3], chain[2]
    elif change == "repeat":
        chain.insert(3, chain[2])
    else:
        del chain[0]
    found = audit.verify(chain)
    assert found is not None
    assert found.seq == seq


def test_checkpoint_is_a_tlog_note(tmp_path: Path) -> None:
    with Library.open(tmp_path) as library:
        deposit(library, "one")
        body = library.checkpoint("example.org/library")
        newest = library.log(1)[0]
    origin, size, root, rest = body.split("\n")
    assert (origin, int(size), rest) == ("example.org/library", newest.seq, "")
    assert base64.b64decode(root).hex() == newest.digest.removeprefix("blake3:")
    assert audit.parse_checkpoint(body).body() == body
    assert audit.parse_checkpoint(body + "\n— example.org/library AAAA\n").size == newest.seq


@pytest.mark.parametrize(
    "text",
    [
        *("", "a\n1\n", "a\n-1\nAAAA\n", "a\n1\nAAAA\n", "a\n1\n!!\n", "\n1\nAAAA\n"),
        "a\n01\n" + "A" * 43 + "=\n",
        "a\n" + "9" * 30 + "\n" + "A" * 43 + "=\n",
    ],
)
def test_what_is_no_checkpoint_is_refused(text: str) -> None:
    with pytest.raises(FormatError):
        audit.parse_checkpoint(text)


@pytest.mark.parametrize("origin", ["", "two\nlines", "a+b"])
def test_origin_must_fit_on_its_line(tmp_path: Path, origin: str) -> None:
    with Library.open(tmp_path) as library, pytest.raises(FormatError):
        library.checkpoint(origin)


def test_rolled_back_library_is_caught(tmp_path: Path) -> None:
    """A whole older copy of the database is a valid chain: only the checkpoint kept elsewhere shows it."""
    with Library.open(tmp_path / "lib") as library:
        deposit(library, "one")
        early = library.checkpoint("x")
    old = (tmp_path / "lib" / DATABASE).read_bytes()
    with Library.open(tmp_path / "lib") as library:
        deposit(library, "two")
        late = library.checkpoint("x")
        assert library.check_against(early) is None
        assert library.check_against(late) is None
    (tmp_path / "lib" / DATABASE).write_bytes(old)
    with Library.open(tmp_path / "lib") as library:
        assert library.verify_log() is None
        assert library.check_against(early) is None
        found = library.check_against(late)
        assert found is not None
        assert "rolled back" in found.reason
        deposit(library, "three")
        deposit(library, "four")
        rewritten = library.check_against(late)
        assert rewritten is not None
        assert "rewritten" in rewritten.reason
