"""The program as a user starts it: `python app.py …` in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Ran:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def scion(*words: str, library: Path | None = None, timeout: float = 240, **variables: str) -> Ran:
    """Run `app.py --json WORDS`; `variables` go on top of the environment."""
    before = [] if library is None else ["--library", str(library)]
    done = subprocess.run(
        [sys.executable, "app.py", *before, "--json", *words],
        cwd=ROOT,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def python(code: str, *arguments: str, timeout: float = 240) -> Ran:
    """Run a few lines of Python in a fresh interpreter, with the repository on its path."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)
