"""The documents say what is there: every command, option, setting, default, path and make target, both ways."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.settings import _OTHER_VARIABLES, Settings
from tests.program import ROOT

README = ROOT / "README.md"
DOCUMENTS = [path for path in (README, ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))) if path.is_file()]
TEXT = README.read_text(encoding="utf-8")


def commands() -> dict[tuple[str, ...], set[str]]:
    """Every command of the program with its options."""
    from typer.main import get_command

    import app

    found: dict[tuple[str, ...], set[str]] = {}

    def walk(command: object, path: tuple[str, ...]) -> None:
        inner = getattr(command, "commands", None)
        if inner is not None:
            for name, item in inner.items():
                walk(item, (*path, name))
        else:
            found[path] = {option for item in command.params for option in item.opts}  # type: ignore[attr-defined]

    walk(get_command(app.app), ())
    return found


def global_options() -> set[str]:
    from typer.main import get_command

    import app

    return {option for item in get_command(app.app).params for option in item.opts}


COMMANDS = commands()
GROUPS = {path[0] for path in COMMANDS}


def mentioned(text: str) -> Iterator[tuple[tuple[str, ...], set[str]]]:
    """Command lines in backticks or code blocks whose first word is a command, with the options they use."""
    plain = re.sub(r'"[^"`]*"', "TEXT", text.replace("\\|", "/"))
    pieces = re.findall(r"`([^`\n]+)`", plain) + re.findall(r"^(?:\.venv/bin/)?python app\.py (.*)$", plain, re.M)
    for piece in pieces:
        words = piece.removeprefix("python app.py ").split()
        while words and words[0] in ("--library", "--model", "--json"):
            words = words[1:] if words[0] == "--json" else words[2:]
        if not words or words[0] not in GROUPS or (len(words) == 1 and (words[0],) not in COMMANDS):
            continue
        path = next((tuple(words[:n]) for n in (3, 2, 1) if tuple(words[:n]) in COMMANDS), tuple(words[:2]))
        yield path, set(re.findall(r"--[a-z][a-z-]*", piece))


def table() -> dict[str, str]:
    """The settings' table: variable -> default as written."""
    rows: dict[str, str] = {}
    for line in TEXT.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        names = re.findall(r"`(SCION_[A-Z0-9_]+)`", cells[0])
        if line.startswith("|") and names and len(cells) == 3:
            parts = cells[1].split(",") if len(names) > 1 else [cells[1]]
            defaults = [part.strip().strip("`") for part in parts]
            rows |= dict(zip(names, defaults, strict=True))
    return rows


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_command_that_is_mentioned_exists(path: Path) -> None:
    for command, options in mentioned(path.read_text(encoding="utf-8")):
        assert command in COMMANDS, f"there is no command {' '.join(command)}"
        unknown = options - COMMANDS[command] - global_options()
        assert not unknown, f"{' '.join(command)} has no {', '.join(sorted(unknown))}"


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_is_documented(command: tuple[str, ...]) -> None:
    assert command in {path for path, _ in mentioned(TEXT)}


def test_every_global_option_is_documented() -> None:
    assert {option for option in global_options() if f"`{option}" not in TEXT} <= {"--help"}


def test_every_setting_is_documented_with_its_default() -> None:
    written = table()
    assert set(written) == {f"SCION_{name.upper()}" for name in Settings.model_fields}
    for name, field in Settings.model_fields.items():
        default = field.default
        if field.default_factory is not None:  # a folder of the user's
            continue
        expected = "" if default is None else str(default).lower() if isinstance(default, bool) else str(default)
        assert written[f"SCION_{name.upper()}"] in (expected, expected.removesuffix(".0")), name


@pytest.mark.parametrize("path", [*DOCUMENTS, ROOT / "Makefile"], ids=lambda path: path.name)
def test_every_variable_that_is_mentioned_exists(path: Path) -> None:
    known = {f"SCION_{name.upper()}" for name in Settings.model_fields} | _OTHER_VARIABLES
    assert set(re.findall(r"\bSCION_[A-Z0-9_]+\b", path.read_text(encoding="utf-8"))) <= known


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_leads_to_a_file(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    targets = [target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text)]
    local = [target for target in targets if target and not re.match(r"[a-z]+:", target)]
    assert [target for target in local if not (path.parent / target).exists()] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_path_in_backticks_exists(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    named = re.findall(r"`((?:app|core|library|ui|tests|docs|\.ci)(?:/[\w.*-]+)+/?|app\.py|Makefile|Dockerfile)`", text)
    assert [name for name in named if not list(ROOT.glob(name.rstrip("/")))] == []


def test_the_tree_is_the_tree() -> None:
    blocks = re.findall(r"```\n(app\.py.*?)```", TEXT, re.S)
    assert blocks, "the README shows no tree"
    names = [name for line in blocks[0].splitlines() for name in re.findall(r"^[\w./]+|[\w.]+/[\w/.]+", line)]
    assert [name for name in names if not (ROOT / name.rstrip("/")).exists()] == []


def test_every_make_target_that_is_mentioned_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    assert set(re.findall(r"`?make ([a-z][a-z-]*)`?", "\n".join(re.findall(r"`[^`]+`", TEXT)))) <= targets
    assert {"run", "test"} <= targets
