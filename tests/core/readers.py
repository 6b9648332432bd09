"""A tiny model in a folder, books made with it, and a small source text, for the tests of books."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from core.evaluate.tiny_reader import write_tiny_reader
from core.jobs import Context
from core.model import FrozenModel, load
from core.settings import load_settings
from library.store import Library

WINDOW = 1024
_WORDS = "stone river lamp winter paper copper garden letter market engine window harbour signal thread".split()  # noqa: SIM905


def tiny_reader(folder: Path, window: int = WINDOW) -> FrozenModel:
    write_tiny_reader(folder, window=window)
    return load(load_settings(model=str(folder), device="cpu"))


def prose(seed: int, paragraphs: int) -> list[str]:
    """Paragraphs of 60 to 180 characters, no two alike."""
    random = Random(seed)
    return [
        f"Note {seed}-{number}. " + " ".join(random.choice(_WORDS) for _ in range(random.randint(8, 24))) + "."
        for number in range(paragraphs)
    ]


def context(by: str = "alice") -> Context:
    return Context("job", {}, by, threading.Event())


@contextmanager
def library(folder: Path) -> Iterator[Library]:
    with Library.open(folder, actor="alice") as opened:
        yield opened
