"""A server of the page in its own process, with written text in place of a model or with the real program.

Own process: Gradio's import leaves warnings and event loops behind that are not ours, and a real port lets a real
browser in. `python -m tests.ui.serving FOLDER PORT OPTIONS_JSON` is the child.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from library.store import Library

ROOT = Path(__file__).resolve().parents[2]
PASSWORD = "correct horse battery"
PROBLEMS = [
    *[(f"There are {n} cards. 3 cards more are added. How many are there?", str(n + 3)) for n in range(4, 12)],
    ("Mia has 12 apples and eats 5 of them. How many apples are left?", "7"),
    ("A box holds 6 rows of 4 eggs. How many eggs are in the box?", "24"),
    ("Solve $x^2 = 49$ for a positive $x$.", "7"),
]


@dataclass(frozen=True)
class Server:
    """A running page: its address, and the library behind it, opened a second time by the test."""

    url: str
    library: Library
    process: subprocess.Popen[bytes]
    log: Path


@contextlib.contextmanager
def served(
    folder: Path,
    *,
    filled: bool = True,
    users: dict[str, str] | None = None,
    pace: float = 0.02,
    words: str = "",
    **settings: object,
) -> Iterator[Server]:
    """The page over a written engine. `users` maps names to roles; each has `PASSWORD`."""
    options = {"filled": filled, "users": users or {}, "pace": pace, "words": words, "settings": settings}
    with _running(folder, ["-m", "tests.ui.serving", str(folder), "PORT", json.dumps(options)]) as server:
        yield server


@contextlib.contextmanager
def program(folder: Path) -> Iterator[Server]:
    """The real program, as a user starts it: `python app.py serve`."""
    command = ["app.py", "--library", str(folder / "library"), "serve", "--host", "127.0.0.1", "--port", "PORT"]
    with _running(folder, command) as server:
        yield server


@contextlib.contextmanager
def _running(folder: Path, command: list[str]) -> Iterator[Server]:
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    log = folder / "server.log"
    environment = {**os.environ, "SCION_LIBRARY": str(folder / "library"), "PYTHONUNBUFFERED": "1"}
    environment.pop("SCION_MODEL", None)
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, *[str(port) if word == "PORT" else word for word in command]],
            cwd=ROOT,
            env=environment,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait(url, process, log)
        with Library.open(folder / "library") as library:
            yield Server(url, library, process, log)
    finally:
        stop(process, patience=20)


def stop(process: subprocess.Popen[bytes], *, patience: float) -> None:
    """Ask it to end, and end it after so many seconds."""
    process.terminate()
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(10)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(url: str, process: subprocess.Popen[bytes], log: Path, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"{url}/healthz", timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError(f"the server did not start:\n{log.read_text(errors='replace')[-4000:]}")


def main(folder: str, port: str, options: str) -> None:
    import uvicorn

    from core.settings import load_settings
    from tests.ui.doubles import WORDS, WrittenEngine, fill
    from ui.access import hash_password
    from ui.server import build_app

    given = json.loads(options)
    root = Path(folder) / "library"
    with Library.open(root) as library:
        settings = load_settings(library=root, port=int(port), **given["settings"])
        library.interrupt_jobs()
        engine = WrittenEngine(settings, library, pace=given["pace"], words=given["words"] or WORDS)
        if given["filled"]:
            fill(engine, PROBLEMS, days=6)
        for name, role in given["users"].items():
            library.add_user(name, role, hash_password(PASSWORD))
        uvicorn.run(
            build_app(engine, settings),
            port=int(port),
            root_path=settings.root_path,
            log_level="warning",
            timeout_graceful_shutdown=1,
        )
        engine.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
