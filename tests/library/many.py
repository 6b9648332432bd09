"""Many synthetic records (core/evaluate/synthetic.py) under the tests' own model and environment."""

from __future__ import annotations

from pathlib import Path

from core.evaluate import synthetic
from core.evaluate.synthetic import texts
from tests.library.stores import ENVIRONMENT, IDENTITY

__all__ = ["fill", "texts"]


def fill(root: Path, count: int, seed: int = 0, start: int = 0) -> None:
    synthetic.fill(root, count, seed=seed, start=start, identity=IDENTITY, environment=ENVIRONMENT)
