"""Commands of what travels between libraries: export, import, keys."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from library.errors import UsageError
from ui.terminal.common import actor, plain, session, short, size, table

keys = typer.Typer(no_args_is_help=True, help="Signing keys: one's own, and those one trusts.")


def export(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="the bundle to write; must not exist")],
    digest: Annotated[list[str] | None, typer.Option(help="an artifact, repeatable; default: all published")] = None,
    key: Annotated[Path | None, typer.Option(help="private key file to sign with (library keys new)")] = None,
) -> None:
    """Write artifacts to one file."""
    from library.exchange import export_bundle
    from library.signing import load_key

    here = session(context)
    with here.library() as library:
        listing = export_bundle(library, file, digest, signer=load_key(key) if key else None)
    total = sum(item.size for item in listing.entries)
    shown = {"file": str(file), "artifacts": [item.digest for item in listing.entries], "bytes": total}
    here.show(shown, f"{len(listing.entries)} artifacts, {size(total)}, {'signed' if key else 'not signed'}: {file}")


def import_(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="the bundle to read")],
    accept: Annotated[bool, typer.Option("--accept", help="publish what is new, as a person who looked at it")] = False,
    trust_key: Annotated[
        bool, typer.Option("--trust-key", help="publish if a trusted key signed it, else exit 4")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only verify and show the difference")] = False,
) -> None:
    """Verify a bundle, show what it would add, bring that in; without --accept or --trust-key nothing is published."""
    from core.gate import CANONICAL_VERSION, canonical_key
    from library.exchange import import_bundle, preview_bundle

    here = session(context)
    with here.library(create=True) as library:
        preview = preview_bundle(library, file, require_signature=trust_key)
        landed: tuple[str, ...] = ()
        published: list[str] = []
        if not dry_run:
            landed = import_bundle(library, file, lambda text: (canonical_key(text), CANONICAL_VERSION), actor=actor())
            if accept or trust_key:
                waiting = [item.digest for item in preview.incoming if item.status == "imported"]
                published = [row.digest for row in library.accept_import([*landed, *waiting], actor())]
    signed = preview.contents.signed_by
    shown = {
        "bundle": str(preview.contents.digest),
        "signed_by": signed,
        "claimed_key": preview.contents.claimed_key,
        "incoming": [plain(item) for item in preview.incoming],
        "imported": list(landed),
        "published": published,
    }
    rows = [
        (i.digest[7:19], i.status, short(i.answer, 16), i.model, size(i.size), short(i.problem, 56))
        for i in preview.incoming
    ]
    words = table(rows, ("digest", "status", "answer", "model", "size", "problem"))
    claimed = preview.contents.claimed_key
    by = f"signed by {signed}" if signed else f"signed by an unknown key {claimed}" if claimed else "not signed"
    state = f"{len(landed)} imported, {len(published)} published"
    if landed and not published:
        state += "; look at them, then: library accept DIGEST..."
    here.show(shown, f"{words}\n{by}; {state}")


def accept(context: typer.Context, digest: Annotated[list[str], typer.Argument(help="imported artifacts")]) -> None:
    """Publish imported artifacts that a person has looked at."""
    here = session(context)
    with here.library() as library:
        rows = library.accept_import([library.artifact(name).digest for name in digest], actor())
    here.show([plain(row) for row in rows], "\n".join(f"{row.digest} published" for row in rows))


def refuse(
    context: typer.Context,
    digest: Annotated[list[str], typer.Argument(help="imported artifacts")],
    reason: Annotated[str, typer.Option(help="why; required")],
) -> None:
    """Turn imported artifacts away for good."""
    here = session(context)
    with here.library() as library:
        rows = library.refuse_import([library.artifact(name).digest for name in digest], actor(), reason)
    here.show([plain(row) for row in rows], "\n".join(f"{row.digest} refused" for row in rows))


def file_name(name: str) -> str:
    """A key's name as the name of its file: a name is for people, and never a path."""
    if not re.fullmatch(r"[\w][\w .@+-]{0,63}", name):
        raise UsageError(f"a key's name is letters, digits and ' .@+-', not {name[:40]!r}; or give --file")
    return name


@keys.command("new")
def new_key(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="a name for people")],
    file: Annotated[Path | None, typer.Option(help="private key file; default: in the library")] = None,
) -> None:
    """Make a key pair; the private key's file is readable by its owner only."""
    from library.signing import generate_key
    from library.tables import Key

    here = session(context)
    with here.library(create=True) as library:
        path = file or here.settings().library / "keys" / f"{file_name(name)}.pem"
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        made = generate_key(path)
        row = library.add_key(
            Key(id=made.id, name=name, public=made.public.text, trust="own", created=""), actor=actor()
        )
    here.show({**plain(row), "file": str(path)}, f"{row.id}\n{row.public}\nprivate key: {path}")


@keys.command("list")
def list_keys(context: typer.Context) -> None:
    """Known keys and what is thought of them."""
    here = session(context)
    with here.library() as library:
        rows = library.keys()
    words = table([(r.id[7:19], r.trust, r.name, r.public) for r in rows], ("id", "trust", "name", "public key"))
    here.show([plain(r) for r in rows], words if rows else "no keys")


@keys.command("trust")
def trust_key(
    context: typer.Context,
    public: Annotated[str, typer.Argument(help="ed25519:<64 hex>, as its owner shows it")],
    name: Annotated[str, typer.Option(help="a name for people; required")],
) -> None:
    """Believe bundles that this key signed."""
    from library.signing import PublicKey
    from library.tables import Key

    here = session(context)
    parsed = PublicKey.parse(public)
    with here.library(create=True) as library:
        library.add_key(Key(id=parsed.id, name=name, public=parsed.text, trust="trusted", created=""), actor=actor())
        row = library.set_key_trust(parsed.id, "trusted", actor=actor())
    here.show(row, f"{row.id} ({row.name}) is trusted")


@keys.command("remove")
def remove_key(context: typer.Context, key_id: Annotated[str, typer.Argument(help="the key's full id")]) -> None:
    """Forget a key. The private key's file is left where it is."""
    here = session(context)
    with here.library() as library:
        library.remove_key(key_id, actor=actor())
    here.show({"removed": key_id}, f"{key_id} removed")
