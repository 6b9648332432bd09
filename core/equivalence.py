"""Whether two answers mean the same: one question with a deadline, asked of a process that can be killed.

math-verify and sympy may hang, use up memory, or refuse to run outside of the main thread, so neither is ever
imported here. It must not know mathematics; that is the worker's (`core/equivalence_worker.py`).
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[1]
_START_SECONDS = 60.0  # imports on a slow, busy machine; no deadline pays for them


@dataclass(frozen=True)
class Equality:
    """`outcome` is "equal", "different" or "unknown"; unknown is not equal. `reason` is words for a reviewer."""

    outcome: str
    reason: str

    @property
    def is_equal(self) -> bool:
        return self.outcome == "equal"


class Judge:
    """Owns one worker process, started on first use, reused, replaced after it was killed or died.

    Safe to call from any thread: calls wait for one another, and a deadline counts from a call's own turn.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._worker: _Worker | None = None

    def equal(self, gold: str, pred: str, *, deadline: float = 5.0) -> Equality:
        """Compares a reference with an answer, both LaTeX or plain text; not symmetric in how it reads "x = 1".

        Never raises for what the texts hold. At the deadline (seconds) the worker is killed: "unknown".
        """
        with self._lock:
            try:
                if self._worker is None or not self._worker.alive():
                    self._drop()
                    self._worker = _Worker()
                reply = self._worker.ask(gold, pred, deadline)
            except _Late:
                self._drop()
                return Equality("unknown", f"not decided within {deadline:g} s")
            except (_Gone, OSError) as error:
                self._drop()
                return Equality("unknown", f"the comparison process ended without an answer ({error})")
            if reply.get("last"):
                self._drop()
            return Equality(str(reply["outcome"]), str(reply["reason"]))

    def close(self) -> None:
        """Ends the worker, if any; a later call starts a new one."""
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        if self._worker is not None:
            self._worker.kill()
            self._worker = None


class _Late(Exception):
    pass


class _Gone(Exception):
    pass


class _Worker:
    def __init__(self) -> None:
        environment = dict(os.environ)
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(_ROOT), environment.get("PYTHONPATH"))))
        environment["PYTHONHASHSEED"] = "0"  # sympy orders by hash in places: the same question, the same answer
        self._process = subprocess.Popen(
            [sys.executable, "-m", "core.equivalence_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            text=True,
            encoding="utf-8",
        )
        self._replies: queue.Queue[str] = queue.Queue()
        # Pipes cannot be polled on every system; a thread that blocks on one can be waited for with a deadline.
        self._reader = threading.Thread(target=self._read, name="equivalence-reader", daemon=True)
        self._reader.start()
        self._asked = 0
        try:
            self._next(time.monotonic() + _START_SECONDS)
        except (_Late, _Gone):
            self.kill()
            raise _Gone("it did not start; is math-verify installed?") from None

    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, gold: str, pred: str, deadline: float) -> dict[str, Any]:
        until = time.monotonic() + deadline
        self._asked += 1
        request = {"id": self._asked, "gold": gold, "pred": pred, "seconds": deadline}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        reply = self._next(until)
        if reply.get("id") != self._asked:
            raise _Gone("its replies are out of step")
        return reply

    def kill(self) -> None:
        with contextlib.suppress(OSError):
            self._process.kill()
        self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _next(self, until: float) -> dict[str, Any]:
        try:
            line = self._replies.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            raise _Late from None
        if not line:
            raise _Gone(f"exit status {self._process.wait()}")
        message: dict[str, Any] = json.loads(line)
        return message

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._replies.put(line)
        self._replies.put("")


# The one worker that all callers of `equal` share: a process a caller would cost a second and 100 MB each.
_shared = Judge()
atexit.register(_shared.close)


def equal(gold: str, pred: str, *, deadline: float = 5.0) -> Equality:
    """`Judge.equal` of the process-wide judge, which is closed at exit."""
    return _shared.equal(gold, pred, deadline=deadline)
