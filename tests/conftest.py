"""What all tests share: no settings or folders of the user, one loaded model, one solved and approved problem.

Converted models lie in SCION_CACHE, by default in the normal cache folder, so that a second run is quick.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:  # torch takes seconds to import, and most tests need none
    from core.model import FrozenModel
    from library.store import Library

PROBLEM = "Carol collects 2 peanuts. Carol's father gives Carol 5 more. How many peanuts does Carol have?"
ANSWER = "7"
_KEPT = ("SCION_CACHE", "SCION_CHROMIUM", "SCION_KILL9_ROUNDS", "SCION_PROPERTY_CASES")
_PACKAGES = ("torch", "transformers", "gradio", "sqlmodel", "pydantic", "blake3", "hypothesis")


@dataclass(frozen=True)
class Deposit:
    """A library folder, closed, with `PROBLEM` solved, approved and published in it."""

    folder: Path
    attempt: str
    artifact: str
    solve_tokens: int

    def blob(self) -> Path:
        """The artifact's file."""
        name = self.artifact.removeprefix("blake3:")
        (found,) = [path for path in (self.folder / "blobs").rglob("*") if path.is_file() and name.endswith(path.name)]
        return found


def pytest_configure(config: pytest.Config) -> None:
    from core.settings import cache_folder

    cache = os.environ.get("SCION_CACHE") or str(cache_folder())
    for name in [name for name in os.environ if name.startswith("SCION_") and name not in _KEPT]:
        del os.environ[name]
    home = Path(tempfile.mkdtemp(prefix="scion-tests-"))
    config.add_cleanup(lambda: shutil.rmtree(home, ignore_errors=True))
    os.environ |= {
        "SCION_CACHE": cache,
        "SCION_LIBRARY": str(home / "library"),
        "SCION_THREADS": "2",  # part of the environment's digest, which other processes must share
        "XDG_DATA_HOME": str(home),
        "HF_HUB_OFFLINE": "1",
        # A test and the process it starts share the cores: spinning threads would hold each other up.
        "OMP_WAIT_POLICY": "PASSIVE",
    }


def pytest_report_header() -> list[str]:
    installed = []
    for package in _PACKAGES:
        try:
            installed.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            installed.append(f"{package} absent")
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return [f"{machine}; models in {os.environ['SCION_CACHE']}", ", ".join(installed)]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        names: Any = getattr(item, "fixturenames", ())
        if {"model", "deposited", "golden"} & set(names):
            item.add_marker(pytest.mark.model)


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    """An empty library in a folder of the test's own."""
    from library.store import Library

    with Library.open(tmp_path / "library", actor="tester") as opened:
        yield opened


@pytest.fixture(scope="session")
def model() -> FrozenModel:
    """The embedded SmolLM2, loaded once (and converted once a machine)."""
    from core.model import load
    from core.settings import load_settings

    return load(load_settings())


@pytest.fixture(scope="session")
def gemma() -> FrozenModel:
    """Gemma 3 270M: sliding windows on a real model. In bfloat16, which its states are stored in on most devices."""
    from core.model import load
    from core.settings import load_settings
    from library.errors import UnknownModel

    try:
        return load(load_settings(model="gemma3-270m", dtype="bfloat16"))
    except UnknownModel as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def golden(model: FrozenModel, tmp_path_factory: pytest.TempPathFactory) -> Deposit:
    """`PROBLEM` solved by sampling in a batch, approved and published, once for all tests. Not to be written to."""
    from core.engine import Engine
    from core.settings import load_settings
    from library.store import Library

    folder = tmp_path_factory.mktemp("golden") / "library"
    with Library.open(folder, actor="tester") as library:
        engine = Engine(load_settings(library=folder), library)
        engine._model = model  # the session's own, instead of a second copy of the weights
        job = engine.submit(PROBLEM, by="tester", reference=ANSWER, attempts=8, max_tokens=96, temperature=0.7, seed=0)
        view = engine.worker.wait(job, timeout=300)
        assert view.state == "done", view.error
        assert view.result["status"] == "solved", view.result
        attempt = library.attempt(str(view.result["chosen"]))
        decided = engine.decide(attempt.id, version=attempt.version, action="approve", reviewer="ada", reason="right")
        assert decided.artifact is not None
        engine.close()
    return Deposit(folder, attempt.id, decided.artifact.digest, attempt.decode_tokens)


@pytest.fixture
def deposited(golden: Deposit, tmp_path: Path) -> Deposit:
    """A copy of the golden library that the test may damage."""
    folder = tmp_path / "deposited"
    shutil.copytree(golden.folder, folder)
    return Deposit(folder, golden.attempt, golden.artifact, golden.solve_tokens)
