"""Commands of access: users with roles. With no users the page needs no login and answers this machine only."""

from __future__ import annotations

from typing import Annotated

import typer

from library.errors import UsageError
from ui.terminal.common import actor, session, table

app = typer.Typer(no_args_is_help=True, help="Who may log in to the page: viewer, solver, reviewer, admin.")
_ROLES = ("viewer", "solver", "reviewer", "admin")
_Password = Annotated[
    str, typer.Option(prompt=True, hide_input=True, confirmation_prompt=True, help="asked for if left out")
]


@app.command()
def add(
    context: typer.Context,
    name: str,
    role: Annotated[str, typer.Option(help="viewer, solver, reviewer or admin")],
    password: _Password,
) -> None:
    """Add a user. From the first one on, the page asks everybody to log in."""
    from ui.access import hash_password

    here = session(context)
    with here.library(create=True) as library:
        row = library.add_user(name, _role(role), hash_password(password), actor=actor())
    here.show({"name": row.name, "role": row.role}, f"{row.name} is a {row.role}")


@app.command("list")
def list_(context: typer.Context) -> None:
    """The users, without their password hashes."""
    here = session(context)
    with here.library() as library:
        rows = [{"name": u.name, "role": u.role, "active": u.active, "created": u.created} for u in library.users()]
    words = table(
        [(r["name"], r["role"], r["active"], r["created"]) for r in rows], ("name", "role", "active", "created")
    )
    here.show(rows, words if rows else "no users: the page needs no login and answers this machine only")


@app.command()
def role(context: typer.Context, name: str, role: Annotated[str, typer.Argument(help="the new role")]) -> None:
    """Change a user's role."""
    here = session(context)
    with here.library() as library:
        row = library.update_user(name, role=_role(role), actor=actor())
    here.show({"name": row.name, "role": row.role}, f"{row.name} is a {row.role}")


@app.command()
def passwd(context: typer.Context, name: str, password: _Password) -> None:
    """Change a user's password."""
    from ui.access import hash_password

    here = session(context)
    with here.library() as library:
        library.update_user(name, password=hash_password(password), actor=actor())
    here.show({"name": name}, f"{name} has a new password")


@app.command()
def disable(
    context: typer.Context, name: str, enable: Annotated[bool, typer.Option("--enable", help="let in again")] = False
) -> None:
    """Keep a user out; the record stays, since decisions name it."""
    here = session(context)
    with here.library() as library:
        row = library.update_user(name, active=enable, actor=actor())
    here.show({"name": row.name, "active": row.active}, f"{row.name} is {'let in' if row.active else 'kept out'}")


def _role(name: str) -> str:
    if name not in _ROLES:
        raise UsageError(f"unknown role {name!r}: one of {', '.join(_ROLES)}")
    return name
