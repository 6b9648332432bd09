"""Who is at the page and what they may do: roles, sessions, throttled logins. Knows no Gradio and no HTML.

Without users in the library there is one local person with all rights, and only from this machine. As soon as
there is a user, everybody logs in.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_address
from typing import Any, Protocol

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from library.errors import ScionError, UsageError

COOKIE = "scion_session"
LOCAL = "local"
SESSION_SECONDS = 12 * 3600
PASSWORD_LENGTH = 10
_FREE_FAILURES = 5  # failed logins before waiting starts; then 2, 4, 8, ... seconds
_LONGEST_WAIT = 900.0
_KEPT = 10_000
_USERS_SECONDS = 2.0  # how long a changed role may go unnoticed


class Right(StrEnum):
    """See everything; run the model and ask; decide; revoke, import and manage users."""

    VIEW = "view"
    SOLVE = "solve"
    REVIEW = "review"
    ADMIN = "admin"


RIGHTS: Mapping[str, frozenset[Right]] = {
    "viewer": frozenset({Right.VIEW}),
    "solver": frozenset({Right.VIEW, Right.SOLVE}),
    "reviewer": frozenset({Right.VIEW, Right.SOLVE, Right.REVIEW}),
    "admin": frozenset(Right),
}


class Denied(ScionError):
    """The person may not do this, or is nobody we know."""


class Throttled(Denied):
    """Too many failed logins; `seconds` says how long to wait."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(f"too many failed logins; try again in {seconds:.0f} s")


class UserLike(Protocol):
    """What is needed of a `library.tables.User`."""

    name: str
    role: str
    password: str
    active: bool


class RequestLike(Protocol):
    """What Starlette's and Gradio's requests have in common."""

    @property
    def cookies(self) -> Any: ...
    @property
    def client(self) -> Any: ...


@dataclass(frozen=True)
class Person:
    name: str
    role: str
    rights: frozenset[Right]

    def may(self, right: Right) -> bool:
        return right in self.rights


@dataclass
class _Failures:
    count: int = 0
    until: float = 0.0


def hash_password(password: str) -> str:
    """An argon2id hash for the users table. `UsageError` for a password that is too short."""
    if len(password) < PASSWORD_LENGTH:
        raise UsageError(f"a password needs at least {PASSWORD_LENGTH} characters")
    return PasswordHasher().hash(password)


class Access:
    """Sessions and throttles of one server process. Safe to use from several threads; keeps nothing on disk."""

    def __init__(self, users: Callable[[], Sequence[UserLike]], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._read_users, self._clock = users, clock
        self._lock = threading.Lock()
        self._sessions: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._failures: OrderedDict[str, _Failures] = OrderedDict()
        self._users: dict[str, UserLike] = {}
        self._users_read = float("-inf")
        self._nobody = PasswordHasher().hash(secrets.token_hex(16))  # so that an unknown name costs the same time

    def open(self) -> bool:
        """True while the library has no users: nobody logs in."""
        return not self._known()

    def of(self, request: RequestLike) -> Person | None:
        """The person behind a request, or None. Reads the session cookie and, without users, the client's address."""
        users = self._known()
        if not users:
            host = getattr(request.client, "host", "") if request.client else ""
            return Person(LOCAL, "admin", RIGHTS["admin"]) if loopback(host) else None
        token = request.cookies.get(COOKIE)
        if not token:
            return None
        with self._lock:
            name, until = self._sessions.get(_key(token), ("", 0.0))
        user = users.get(name)
        if user is None or not user.active or until <= self._clock():
            return None
        return Person(user.name, user.role, RIGHTS.get(user.role, frozenset()))

    def require(self, request: RequestLike | None, right: Right) -> Person:
        """The person behind the request, who has the right; else `Denied`."""
        person = self.of(request) if request is not None else None
        if person is None:
            raise Denied("log in to do this" if not self.open() else FROM_OUTSIDE)
        if not person.may(right):
            raise Denied(f"{person.name} is a {person.role}; this needs the right to {right}")
        return person

    def login(self, name: str, password: str, address: str) -> str:
        """A new session's token. `Denied` for a wrong name or password, `Throttled` after too many of them."""
        keys = (f"name:{name[:200]}", f"address:{address}")
        now = self._clock()
        with self._lock:
            wait = max((self._failures[key].until - now for key in keys if key in self._failures), default=0.0)
        if wait > 0:
            raise Throttled(wait)
        user = self._known(fresh=True).get(name)
        if not _matches(user.password if user else self._nobody, password) or user is None or not user.active:
            with self._lock:
                for key in keys:
                    self._fail(key, now)
            raise Denied("wrong name or password")
        token = secrets.token_urlsafe(32)
        with self._lock:
            self._failures.pop(keys[0], None)
            self._sessions[_key(token)] = (user.name, now + SESSION_SECONDS)
            while len(self._sessions) > _KEPT:
                self._sessions.popitem(last=False)
        return token

    def logout(self, token: str | None) -> None:
        """Ends a session; nothing if there is none."""
        if token:
            with self._lock:
                self._sessions.pop(_key(token), None)

    def _fail(self, key: str, now: float) -> None:
        failures = self._failures.setdefault(key, _Failures())
        self._failures.move_to_end(key)
        failures.count += 1
        if failures.count >= _FREE_FAILURES:
            failures.until = now + min(_LONGEST_WAIT, 2.0 ** (failures.count - _FREE_FAILURES + 1))
        while len(self._failures) > _KEPT:
            self._failures.popitem(last=False)

    def _known(self, *, fresh: bool = False) -> dict[str, UserLike]:
        now = self._clock()
        if fresh or now - self._users_read > _USERS_SECONDS:
            self._users = {user.name: user for user in self._read_users()}
            self._users_read = now
        return self._users


FROM_OUTSIDE = (
    "this library has no users yet, so it answers only on its own machine; make one with `python app.py users add`"
)


def loopback(host: str) -> bool:
    """Whether an address is this machine's own."""
    try:
        return ip_address(host.split("%")[0]).is_loopback
    except ValueError:
        return host in ("localhost", "testclient")


def _matches(hashed: str, password: str) -> bool:
    try:
        return PasswordHasher().verify(hashed, password)
    except (VerificationError, InvalidHashError):
        return False


def _key(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
