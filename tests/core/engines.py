"""The real engine over a library folder, with the session's loaded model in place of a second copy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.engine import Engine
from core.settings import load_settings
from library.store import Library

if TYPE_CHECKING:
    from core.model import FrozenModel


@contextmanager
def engine_at(folder: Path, loaded: FrozenModel | None = None, **settings: Any) -> Iterator[Engine]:
    with Library.open(folder, actor="tester") as library:
        engine = Engine(load_settings(library=folder, **settings), library)
        engine._model = loaded
        try:
            yield engine
        finally:
            engine.close()


def result_of(engine: Engine, job: str, timeout: float = 300) -> Mapping[str, Any]:
    """The result of a job that must end well."""
    view = engine.worker.wait(job, timeout=timeout)
    assert view.state == "done", f"{view.state}: {view.error}"
    return view.result


def asked(engine: Engine, query: str, **options: Any) -> Mapping[str, Any]:
    """The result of an ask that must end well."""
    return result_of(engine, engine.submit_ask(query, by="tester", **options))
