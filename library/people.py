"""Users and keys as rows. Knows neither how a password is hashed nor how a signature is made."""

from __future__ import annotations

from sqlmodel import col, select

from library.audit import now
from library.errors import Conflict
from library.outcomes import Outcomes
from library.problems import found
from library.tables import Key, User


class People(Outcomes):
    # users

    def add_user(self, name: str, role: str, password: str, *, actor: str | None = None) -> User:
        """A new user; `password` is what the caller's hash function made of it. `Conflict` if the name is taken."""
        user = User(name=name, role=role, password=password, created=now())
        with self._write(actor) as change:
            if change.session.get(User, name) is not None:
                raise Conflict(f"there is a user {name!r} already")
            change.session.add(user)
            change.log("user.add", name, role=role)
        return user

    def user(self, name: str) -> User:
        with self._read() as session:
            return found(session.get(User, name), "user", name)

    def users(self) -> list[User]:
        with self._read() as session:
            return list(session.exec(select(User).order_by(col(User.name))))

    def update_user(
        self,
        name: str,
        *,
        role: str | None = None,
        password: str | None = None,
        active: bool | None = None,
        actor: str | None = None,
    ) -> User:
        """Sets what is given; the log names the columns, never the password."""
        given = {"role": role, "password": password, "active": active}
        changed = {column: value for column, value in given.items() if value is not None}
        with self._write(actor) as change:
            user = found(change.session.get(User, name), "user", name)
            for column, value in changed.items():
                setattr(user, column, value)
            change.session.add(user)
            change.log("user.update", name, columns=sorted(changed), role=user.role, active=user.active)
        return user

    # keys

    def add_key(self, key: Key, *, actor: str | None = None) -> Key:
        """A public key under its id. The same key again changes nothing; another under its id is a `Conflict`."""
        key.created = key.created or now()
        with self._write(actor) as change:
            known = change.session.get(Key, key.id)
            if known is not None:
                if known.public != key.public:
                    raise Conflict(f"there is another key with id {key.id}")
                return known
            change.session.add(key)
            change.log("key.add", key.id, name=key.name, trust=key.trust)
        return key

    def key(self, identifier: str) -> Key:
        with self._read() as session:
            return found(session.get(Key, identifier), "key", identifier)

    def keys(self) -> list[Key]:
        with self._read() as session:
            return list(session.exec(select(Key).order_by(col(Key.created), col(Key.id))))

    def set_key_trust(self, identifier: str, trust: str, *, actor: str | None = None) -> Key:
        with self._write(actor) as change:
            key = found(change.session.get(Key, identifier), "key", identifier)
            before, key.trust = key.trust, trust
            change.session.add(key)
            change.log("key.trust", identifier, before=before, trust=trust)
        return key

    def remove_key(self, identifier: str, *, actor: str | None = None) -> None:
        with self._write(actor) as change:
            key = found(change.session.get(Key, identifier), "key", identifier)
            change.session.delete(key)
            change.log("key.remove", identifier, name=key.name, trust=key.trust)
