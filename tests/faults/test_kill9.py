"""Row 13. `SCION_KILL9_ROUNDS` sets the number of rounds: 20 by default, 200 in CI, 1,000 for `make soak`."""

from __future__ import annotations

import os

import pytest

from tests.faults.kill9 import run

ROUNDS = int(os.environ.get("SCION_KILL9_ROUNDS", "20"))


@pytest.mark.timeout(120 + 6 * ROUNDS)
def test_kill9(capsys: pytest.CaptureFixture[str]) -> None:
    said = run(ROUNDS)
    with capsys.disabled():
        print(f"\n{said}")
