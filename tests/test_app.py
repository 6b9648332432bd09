"""The command line as a user has it: processes, JSON fields, exit codes, and what bad input leads to."""

from __future__ import annotations

import json
import os
import resource
import shutil
import socket
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from library.store import Library
from tests.conftest import PROBLEM, Deposit
from tests.program import python, scion

SUMS = [(f"What is {n} + 4?", str(n + 4)) for n in range(2, 6)]


@dataclass(frozen=True)
class Shelf:
    """A library with three artifacts of made-up bytes and one attempt that waits."""

    folder: Path
    artifacts: tuple[str, ...]
    waiting: str

    def file(self, number: int = 0) -> Path:
        return self.folder / "blobs" / self.artifacts[number][7:9] / self.artifacts[number][9:]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    from core.settings import load_settings
    from tests.ui.doubles import WrittenEngine, add_attempt

    folder = tmp_path_factory.mktemp("filled") / "library"
    with Library.open(folder, actor="tester") as library:
        engine = WrittenEngine(load_settings(library=folder), library)
        attempts = [add_attempt(library, text, "so", answer=answer, reference=answer) for text, answer in SUMS]
        done = [engine.decide(a, version=1, action="approve", reviewer="ada").artifact for a in attempts[:3]]
        engine.close()
    return Shelf(folder, tuple(artifact.digest for artifact in done if artifact), attempts[3])


@pytest.fixture
def shelf(filled: Shelf, tmp_path: Path) -> Shelf:
    """A copy that the test may change."""
    shutil.copytree(filled.folder, tmp_path / "library")
    return Shelf(tmp_path / "library", filled.artifacts, filled.waiting)


def flip(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.chmod(0o600)
    path.write_bytes(raw)


# fields


def test_solve_and_its_fields(tmp_path: Path) -> None:
    """Four tokens are too few for an answer: not solved, exit 1, and every field is there."""
    ran = scion("solve", "What is 2 + 2?", "--max-tokens", "4", "--temperature", "0", library=tmp_path / "library")
    assert ran.code == 1, ran.err
    fields = {"attempt_id", "answer", "evidence", "decode_tokens", "tokens_per_second", "status"}
    assert fields <= ran.json.keys()
    assert (ran.json["status"], ran.json["decode_tokens"]) == ("truncated", 4)
    shown = scion("review", "show", ran.json["attempt_id"], library=tmp_path / "library")
    assert (shown.code, shown.json["status"]) == (0, "truncated")


def test_ask_without_gradio_and_its_fields(deposited: Deposit, tmp_path: Path) -> None:
    (tmp_path / "gradio.py").write_text("raise ImportError('ask must not need the page')")
    ran = scion("ask", PROBLEM, library=deposited.folder, PYTHONPATH=str(tmp_path))
    assert ran.code == 0, ran.err
    assert {
        *("verdict", "reasons", "answer", "decode_tokens", "prefill_tokens", "seconds", "exactness", "artifact"),
        "tokens_saved",
    } <= ran.json.keys()
    assert {"code", "text"} <= ran.json["reasons"][0].keys()


def test_doctor_names_what_is_wrong(tmp_path: Path) -> None:
    ran = scion("doctor", library=tmp_path / "none", SCION_LIBARY="x")
    assert ran.code == 1
    assert ran.json["problems"] == ["SCION_LIBARY is set but names no setting"]
    assert {"python", "platform", "model", "device", "dtype", "identity", "environment", "energy", "library"} <= (
        ran.json.keys()
    )


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        (["review", "list"], {"id", "problem", "answer", "reference_check", "decode_tokens", "version"}),
        (["review", "show", "WAITING"], {"id", "problem", "solution", "evidence", "decisions", "review", "version"}),
        (["library", "list"], {"digest", "state", "answer", "model", "solve_tokens", "size_bytes", "uses"}),
        (["library", "show", "DIGEST"], {"digest", "manifest", "measurements", "outcomes", "problem_text"}),
        (["library", "verify"], {"checked", "bad", "quarantined"}),
        (["library", "check", "--read-data"], {"findings", "records", "files"}),
        (["library", "gc"], set()),
        (["library", "log", "--limit", "2"], {"seq", "created", "actor", "action", "subject"}),
        (["library", "log", "--verify"], {"ok", "finding"}),
        (["gate", "What is 1 + 1?", "What is 1+1?"], {"verdict", "reasons", "edits"}),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else "",
)
def test_fields_of_commands_that_need_no_model(shelf: Shelf, words: list[str], fields: set[str]) -> None:
    named = {"WAITING": shelf.waiting, "DIGEST": shelf.artifacts[0][7:15]}
    ran = scion(*(named.get(word, word) for word in words), library=shelf.folder)
    assert ran.code == 0, ran.err
    shown = ran.json
    assert fields <= (shown[0] if isinstance(shown, list) else shown).keys()


def test_words_are_for_people(shelf: Shelf) -> None:
    """Without --json the same commands print text, one artifact or attempt a line."""
    code = "import sys, app\nsys.argv = ['app.py', '--library', sys.argv[1], *sys.argv[2:]]\napp.main()"
    listed = python(code, str(shelf.folder), "library", "list")
    assert len(listed.out.strip().splitlines()) == 1 + len(shelf.artifacts)
    shown = python(code, str(shelf.folder), "review", "show", shelf.waiting)
    assert shelf.waiting in shown.out
    assert "answer: 9" in shown.out


# decisions


def test_approve_and_reject(shelf: Shelf) -> None:
    approved = scion("review", "approve", shelf.waiting, "--note", "by hand", library=shelf.folder)
    assert approved.code == 0, approved.err
    assert {"decision", "action", "attempt_id", "artifact"} <= approved.json.keys()
    assert approved.json["artifact"].startswith("blake3:")
    again = scion("review", "reject", shelf.waiting, "--reason", "second thoughts", library=shelf.folder)
    assert (again.code, "approved" in again.err) == (1, True)
    assert scion("review", "reject", shelf.waiting, library=shelf.folder).code == 2  # without a reason


def test_a_full_disk_loses_nothing_and_is_made_up_for(shelf: Shelf) -> None:
    """A stand-in for the disk: every write of a blob fails with ENOSPC, as the system would report it."""
    code = """
import errno, os, sys
import app
from library.fsio import RealFileSystem
def full(self, handle, data):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
RealFileSystem.write = full
sys.argv = ["app.py", "--library", sys.argv[1], "review", "approve", sys.argv[2]]
app.main()
"""
    ran = python(code, str(shelf.folder), shelf.waiting)
    assert ran.code == 1
    assert "No space left" in ran.err
    assert "free some space" in ran.err
    assert "Traceback" not in ran.err
    with Library.open(shelf.folder) as library:
        assert [row.id for row in library.unpublished()] == [shelf.waiting]
    retried = scion("review", "approve", shelf.waiting, library=shelf.folder)
    assert retried.code == 0, retried.err
    assert retried.json["artifact"] in {row["digest"] for row in scion("library", "list", library=shelf.folder).json}


# exit codes


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["review", "show", "a0000000000000000"], 1, "a0000000000000000"),
        (["library", "show", "ffffffff"], 1, "ffffffff"),
        (["library", "show", "../../etc/passwd"], 2, "not a digest"),
        (["library", "list", "--limit", "0"], 2, "--limit"),
        (["library", "revoke"], 2, ""),
        (["review", "list", "--state", "odd"], 2, "unknown state 'odd'"),
        (["solve", "  "], 2, "the problem is empty"),
        (["solve", "x" * 20_001], 2, "SCION_MAX_PROBLEM_CHARS"),
        (["solve", "1 + 1?", "--attempts", "0"], 2, "attempts is 0"),
        (["solve"], 2, "problem"),
        (["ask", "1 + 1?", "--gate", "lax"], 2, "unknown gate policy 'lax'"),
        (["ask", "1 + 1?", "--fresh-max-tokens", "-1"], 2, "must not be negative"),
        (["gate", "1 + 1?", "1 + 1?", "--policy", "lax"], 2, "unknown policy 'lax'"),
        (["sing"], 2, "sing"),
    ],
    ids=lambda value: " ".join(value)[:32] if isinstance(value, list) else "",
)
def test_bad_input_is_named(filled: Shelf, words: list[str], code: int, message: str) -> None:
    ran = scion(*words, library=filled.folder)
    assert (ran.code, ran.out) == (code, ""), ran.err
    assert message in ran.err
    assert "Traceback" not in ran.err


def test_a_malformed_setting_stops_every_command(filled: Shelf) -> None:
    ran = scion("library", "list", library=filled.folder, SCION_PORT="seventy")
    assert (ran.code, "SCION_PORT" in ran.err) == (2, True)


def test_an_unknown_model_says_which_there_are(tmp_path: Path) -> None:
    ran = scion("solve", "1 + 1?", library=tmp_path / "library", SCION_MODEL="no-such-model")
    assert ran.code == 1
    assert "no-such-model" in ran.err
    assert "smollm2-135m" in ran.err


def test_a_budget_over_the_context_says_what_fits(tmp_path: Path) -> None:
    ran = scion("solve", "1 + 1?", "--max-tokens", "100000", library=tmp_path / "library")
    assert ran.code == 2
    assert "8192" in ran.err
    assert "use at most" in ran.err


def test_damage_exits_3_and_names_the_artifact(shelf: Shelf) -> None:
    flip(shelf.file(0))
    shelf.file(1).unlink()
    verified = scion("library", "verify", library=shelf.folder)
    assert verified.code == 3
    assert {row["digest"] for row in verified.json["bad"]} == set(shelf.artifacts[:2])
    checked = scion("library", "check", library=shelf.folder)
    assert checked.code == 3
    assert shelf.artifacts[1][7:] in json.dumps(checked.json)
    shown = scion("library", "list", "--state", "quarantined", library=shelf.folder)
    assert [row["digest"] for row in shown.json] == [shelf.artifacts[0]]


def test_an_unsigned_bundle_exits_4_where_a_signature_is_asked_for(shelf: Shelf, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    exported = scion("library", "export", str(bundle), library=shelf.folder)
    assert exported.code == 0, exported.err
    ran = scion("library", "import", str(bundle), "--trust-key", library=tmp_path / "other")
    assert ran.code == 4, ran.err
    assert "sign" in ran.err


def test_a_missing_library_says_how_to_make_one(tmp_path: Path) -> None:
    for words in (["library", "list"], ["library", "verify"], ["review", "list"]):
        ran = scion(*words, library=tmp_path / "none")
        assert (ran.code, "solving a problem" in ran.err) == (1, True)
        assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("words", [["library", "list"], ["review", "list"], ["ask", "1 + 1?"]], ids=" ".join)
def test_a_newer_library_is_left_alone(shelf: Shelf, words: list[str]) -> None:
    with sqlite3.connect(shelf.folder / "library.db") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    ran = scion(*words, library=shelf.folder)
    assert ran.code == 1
    assert "version 99" in ran.err
    assert "update" in ran.err


def test_a_library_that_is_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "library").write_text("a file")
    ran = scion("solve", "1 + 1?", library=tmp_path / "library")
    assert ran.code in (1, 3)
    assert str(tmp_path / "library") in ran.err
    assert "Traceback" not in ran.err
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "library.db").write_bytes(b"not a database" * 100)
    ran = scion("library", "list", library=folder)
    assert (ran.code, "Traceback" in ran.err) == (3, False)


UNPRIVILEGED = """
import os, sys, tempfile
from pathlib import Path
import app
from library.store import Library
from library.search import list_artifacts
with tempfile.TemporaryDirectory() as folder:  # imports that are put off, while they can still be made
    Library.open(Path(folder) / "x").close()
    list_artifacts(Path(folder) / "x")
import core.engine, library.check
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
os.environ["SCION_LIBRARY"] = sys.argv[1]  # as an option, typer itself would look at it first
sys.argv = ["app.py", *sys.argv[2:]]
app.main()
"""


@pytest.fixture
def closed(shelf: Shelf) -> Iterator[Shelf]:
    """A library of which everything may be read and nothing written, reachable for everybody."""
    import tempfile

    top = Path(tempfile.mkdtemp(prefix="scion-closed-", dir="/tmp"))
    folder = top / "library"
    shutil.copytree(shelf.folder, folder)
    for path in [*folder.rglob("*"), folder]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    top.chmod(0o555)
    yield Shelf(folder, shelf.artifacts, shelf.waiting)
    for path in [top, folder, *folder.rglob("*")]:
        if path.is_dir():
            path.chmod(0o755)
    shutil.rmtree(top)


@pytest.mark.parametrize("words", [["review", "list"], ["solve", "1 + 1?"], ["library", "gc"]], ids=" ".join)
def test_no_permission_to_write_is_named(closed: Shelf, words: list[str]) -> None:
    ran = python(UNPRIVILEGED, str(closed.folder), *words)
    assert ran.code == 1, ran.err
    assert str(closed.folder) in ran.err
    assert "permission" in ran.err.lower()
    assert "--library" in ran.err
    assert "Traceback" not in ran.err


def test_no_permission_to_make_a_library_is_named(closed: Shelf) -> None:
    ran = python(UNPRIVILEGED, str(closed.folder / "new"), "solve", "1 + 1?")
    assert (ran.code, str(closed.folder / "new") in ran.err, "Traceback" in ran.err) == (1, True, False)


@pytest.mark.parametrize("words", [["review", "list"], ["library", "list"]], ids=" ".join)
def test_a_folder_that_may_not_be_looked_into_is_named(closed: Shelf, words: list[str]) -> None:
    closed.folder.chmod(0o000)
    try:
        ran = python(UNPRIVILEGED, str(closed.folder), *words)
    finally:
        closed.folder.chmod(0o755)
    assert (ran.code, "Traceback" in ran.err) == (1, False), ran.err
    assert str(closed.folder) in ran.err
    assert "permission" in ran.err.lower()


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ran = scion("serve", "--port", str(port), library=tmp_path / "library")
    assert ran.code == 2
    assert f"127.0.0.1:{port}" in ran.err
    assert "--port" in ran.err


# weight


def test_list_answers_without_torch_and_in_half_a_second(filled: Shelf) -> None:
    """Processor time, so that a busy machine does not count; the best of three."""

    def spent() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    took = []
    for _ in range(3):
        before = spent()
        assert scion("library", "list", library=filled.folder).code == 0
        took.append(spent() - before)
    assert min(took) < 0.5


@pytest.mark.parametrize(
    ("words", "banned"),
    [
        (["library", "list"], ["torch", "transformers", "gradio", "sqlmodel", "numpy"]),
        (["review", "list"], ["torch", "transformers", "gradio"]),
        (["library", "log"], ["torch", "transformers", "gradio"]),
        (["gate", "1 + 1?", "1 + 1?"], ["torch", "transformers", "gradio"]),
        (["--help"], ["torch", "transformers", "gradio", "sqlmodel"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_a_command_loads_no_more_than_it_needs(filled: Shelf, words: list[str], banned: list[str]) -> None:
    code = """
import atexit, json, sys
banned = json.loads(sys.argv[1])
atexit.register(lambda: print("LOADED", *(name for name in banned if name in sys.modules), file=sys.stderr))
import app
sys.argv = ["app.py", "--library", *sys.argv[2:]]
app.main()
"""
    ran = python(code, json.dumps(banned), str(filled.folder), *words)
    assert ran.err.strip() == "LOADED"


def test_every_command_explains_itself() -> None:
    """Help of each command, without starting a process for each."""
    from typer.main import get_command
    from typer.testing import CliRunner

    import app

    def walk(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        for name, inner in getattr(command, "commands", {}).items():
            yield (*path, name)
            yield from walk(inner, (*path, name))

    for path in walk(get_command(app.app), ()):
        shown = CliRunner().invoke(app.app, [*path, "--help"])
        assert shown.exit_code == 0, path
        text = [line for line in shown.output.splitlines() if line.strip(" │╭╰─")]
        assert len(text) > 2, path
    assert os.environ["SCION_LIBRARY"]
