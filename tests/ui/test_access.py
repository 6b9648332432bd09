from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from types import SimpleNamespace

import pytest

from library.errors import UsageError
from ui.access import COOKIE, LOCAL, RIGHTS, SESSION_SECONDS, Access, Denied, Right, Throttled, hash_password, loopback

PASSWORD = "correct horse battery"
HASH = hash_password(PASSWORD)


@dataclass
class Someone:
    name: str
    role: str
    password: str = HASH
    active: bool = True


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Asked:
    cookies: dict[str, str] = field(default_factory=dict)
    host: str = "127.0.0.1"

    @property
    def client(self) -> SimpleNamespace:
        return SimpleNamespace(host=self.host)


Made = tuple[Access, list[Someone], Clock]


@pytest.fixture
def make() -> Callable[..., Made]:
    def made(*users: Someone) -> Made:
        known, clock = list(users), Clock()
        return Access(lambda: known, clock=clock), known, clock

    return made


def enter(access: Access, name: str, address: str = "9.9.9.9") -> Asked:
    return Asked({COOKIE: access.login(name, PASSWORD, address)})


@pytest.mark.parametrize(("host", "right"), [("127.0.0.1", True), ("::1", True), ("10.0.0.9", False), ("", False)])
def test_without_users_only_this_machine_gets_in(make: Callable[..., Made], host: str, right: bool) -> None:
    access, _, _ = make()
    person = access.of(Asked(host=host))
    assert (person is not None) is right
    if person:
        assert person.name == LOCAL
        assert person.rights == frozenset(Right)


@pytest.mark.parametrize(
    ("role", "rights"),
    [
        ("viewer", {Right.VIEW}),
        ("solver", {Right.VIEW, Right.SOLVE}),
        ("reviewer", {Right.VIEW, Right.SOLVE, Right.REVIEW}),
        ("admin", set(Right)),
        ("unknown", set()),
    ],
)
def test_a_role_has_its_rights_and_no_other(make: Callable[..., Made], role: str, rights: set[Right]) -> None:
    access, _, _ = make(Someone("ada", role))
    asked = enter(access, "ada")
    for right in Right:
        if right in rights:
            assert access.require(asked, right).name == "ada"
        else:
            with pytest.raises(Denied):
                access.require(asked, right)


def test_with_a_user_nobody_is_let_in_without_a_session(make: Callable[..., Made]) -> None:
    access, _, _ = make(Someone("ada", "admin"))
    assert access.of(Asked()) is None
    assert access.of(Asked({COOKIE: "guessed"})) is None
    with pytest.raises(Denied, match="log in"):
        access.require(Asked(), Right.VIEW)
    with pytest.raises(Denied):
        access.require(None, Right.VIEW)


@pytest.mark.parametrize(("name", "password"), [("ada", "wrong password"), ("eve", PASSWORD), ("ada", ""), ("", "")])
def test_a_wrong_name_and_a_wrong_password_look_the_same(make: Callable[..., Made], name: str, password: str) -> None:
    access, _, _ = make(Someone("ada", "admin"))
    with pytest.raises(Denied, match="wrong name or password"):
        access.login(name, password, "9.9.9.9")


def test_failed_logins_are_slowed_down_by_name_and_by_address(make: Callable[..., Made]) -> None:
    access, _, clock = make(Someone("ada", "admin"), Someone("bob", "admin"))
    for _ in range(5):
        with pytest.raises(Denied, match="wrong"):
            access.login("ada", "wrong password", "9.9.9.9")
    with pytest.raises(Throttled):  # the right password too: otherwise it could still be guessed
        access.login("ada", PASSWORD, "8.8.8.8")
    with pytest.raises(Throttled):
        access.login("bob", PASSWORD, "9.9.9.9")
    access.login("bob", PASSWORD, "8.8.8.8")
    clock.now += 3
    access.login("ada", PASSWORD, "8.8.8.8")


def test_the_wait_doubles(make: Callable[..., Made]) -> None:
    access, _, clock = make(Someone("ada", "admin"))
    waits = []
    for number in range(9):
        with pytest.raises(Denied, match="wrong"):
            access.login("ada", "wrong password", f"9.9.9.{number}")
        if number >= 4:
            with pytest.raises(Throttled) as caught:
                access.login("ada", PASSWORD, "7.7.7.7")
            waits.append(round(caught.value.seconds))
            clock.now += caught.value.seconds + 0.001
    assert waits == [2, 4, 8, 16, 32]


def test_a_session_ends_by_logout_time_and_deactivation(make: Callable[..., Made]) -> None:
    access, known, clock = make(Someone("ada", "admin"))
    asked = enter(access, "ada")
    assert access.of(asked) is not None
    access.logout(asked.cookies[COOKIE])
    assert access.of(asked) is None
    asked = enter(access, "ada")
    clock.now += SESSION_SECONDS + 1
    assert access.of(asked) is None
    asked = enter(access, "ada")
    known[0].active = False
    clock.now += 3
    assert access.of(asked) is None
    with pytest.raises(Denied):
        access.login("ada", PASSWORD, "1.1.1.1")


def test_a_changed_role_holds_for_open_sessions(make: Callable[..., Made]) -> None:
    access, known, clock = make(Someone("ada", "admin"))
    asked = enter(access, "ada")
    known[0] = Someone("ada", "viewer")
    clock.now += 3
    with pytest.raises(Denied):
        access.require(asked, Right.SOLVE)


def test_the_local_person_is_gone_once_there_is_a_user(make: Callable[..., Made]) -> None:
    access, known, clock = make()
    assert access.open()
    known.append(Someone("ada", "admin"))
    clock.now += 3
    assert not access.open()
    assert access.of(Asked()) is None


def test_tokens_are_not_kept_in_the_clear(make: Callable[..., Made]) -> None:
    access, _, _ = make(Someone("ada", "admin"))
    token = access.login("ada", PASSWORD, "9.9.9.9")
    assert token not in repr(access._sessions)


def test_passwords() -> None:
    assert HASH.startswith("$argon2id$")
    assert hash_password(PASSWORD) != HASH
    with pytest.raises(UsageError, match="10 characters"):
        hash_password("short")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "::1%lo"])
def test_loopback(host: str) -> None:
    assert loopback(host)
    assert not loopback("192.168.1.2")


def test_every_role_may_see_what_a_lesser_one_sees() -> None:
    order = ["viewer", "solver", "reviewer", "admin"]
    for lesser, greater in pairwise(order):
        assert RIGHTS[lesser] < RIGHTS[greater]
