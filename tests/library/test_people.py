from __future__ import annotations

from pathlib import Path

import pytest

from library.errors import Conflict, NotFound, UsageError
from library.store import Library
from library.tables import Key


@pytest.fixture
def library(tmp_path: Path):
    with Library.open(tmp_path / "lib", actor="ada") as opened:
        yield opened


def test_users(library: Library) -> None:
    library.add_user("bob", "reviewer", "$argon2$x")
    with pytest.raises(Conflict, match="already"):
        library.add_user("bob", "viewer", "y")
    with pytest.raises(UsageError):
        library.add_user("eve", "root", "y")
    library.update_user("bob", role="viewer", password="$argon2$secret", active=False)
    row = library.user("bob")
    assert (row.role, row.password, row.active) == ("viewer", "$argon2$secret", False)
    assert [user.name for user in library.users()] == ["bob"]
    with pytest.raises(NotFound):
        library.update_user("eve", role="viewer")
    assert all("argon2" not in entry.detail for entry in library.log())
    assert library.log(1)[0].action == "user.update"


def test_keys(library: Library) -> None:
    key = {"id": "k1", "name": "lab", "created": ""}
    library.add_key(Key(public="ed25519:aa", **key))
    library.add_key(Key(public="ed25519:aa", **key))
    with pytest.raises(Conflict):
        library.add_key(Key(public="ed25519:bb", **key))
    assert library.set_key_trust("k1", "trusted").trust == "trusted"
    with pytest.raises(UsageError):
        library.set_key_trust("k1", "blindly")
    assert [found.trust for found in library.keys()] == ["trusted"]  # noqa: SIM118  (no mapping)
    library.remove_key("k1")
    with pytest.raises(NotFound):
        library.key("k1")
    assert [entry.action for entry in library.log(3)] == ["key.remove", "key.trust", "key.add"]
