"""What a library's size costs: opening it, an exact lookup, candidates, a page of the table, memory.

`measure` runs itself as a program of its own (`python -m core.evaluate.scale FOLDER ROWS`), so that opening is that of
a fresh process and the memory is the library's, not a model's. Imports no torch.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

from core.evaluate.synthetic import IDENTITY, fill, texts

LOOKUPS, QUERIES, PAGES = 300, 60, 10
Say = Callable[[str], None]


@dataclass(frozen=True)
class Scale:
    """At so many rows: 95th percentiles and the slowest page in milliseconds, seconds to the first answer, MB."""

    records: int
    lookup_p95_ms: float
    candidates_p95_ms: float
    page_ms: float
    open_seconds: float
    memory_mb: float
    database_mb: float


def grow_and_measure(root: Path, sizes: Sequence[int], say: Say) -> list[Scale]:
    """Fill the library at `root` (which must be new) step by step with synthetic rows, and measure at each size."""
    from library.store import Library

    Library.open(root).close()
    found, held = [], 0
    for records in sorted(sizes):
        say(f"a library of {records:,} records")
        fill(root, records - held, seed=held, start=held)
        held = records
        found.append(measure(root, records))
    return found


def measure(root: Path, records: int) -> Scale:
    """The figures of one library, from a fresh process. Raises `CalledProcessError` if that fails."""
    done = subprocess.run(
        [sys.executable, "-m", "core.evaluate.scale", str(root), str(records)],
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    return Scale(**json.loads(done.stdout))


def _measure_here(root: Path, records: int) -> Scale:
    started = time.perf_counter()
    from library.store import Library

    with Library.open(root, create=False) as library:
        library.artifacts(limit=1)
        opened = time.perf_counter() - started
        index = library.index
        spread = "SELECT canonical_key FROM artifact WHERE rowid % ? = 0 LIMIT ?"
        known = [key for (key,) in index.query(spread, (max(1, records // LOOKUPS), LOOKUPS))]
        lookups = [_ms(lambda key=key: index.exact(key, IDENTITY)) for key in known]  # type: ignore[misc]
        queries = list(islice(texts(QUERIES, seed=12_345), QUERIES))
        candidates = [_ms(lambda text=text: index.candidates(text, 5, IDENTITY)) for text in queries]  # type: ignore[misc]
        pages = [_ms(lambda n=n: library.artifacts(limit=50, offset=50 * n)) for n in range(PAGES)]  # type: ignore[misc]
        pages += [_ms(lambda: library.artifacts(limit=50, order="solve_tokens")) for _ in range(PAGES)]
        memory = _resident_mb()
    size = sum(path.stat().st_size for path in root.iterdir() if path.is_file())
    return Scale(records, p95(lookups), p95(candidates), max(pages), opened, memory, size / 1e6)


def p95(values: Sequence[float]) -> float:
    """The value that 95 % do not exceed (nearest rank). Raises `ValueError` for none."""
    if not values:
        raise ValueError("no values have no percentile")
    ordered = sorted(values)
    return ordered[-(-95 * len(ordered) // 100) - 1]


def _ms(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return (time.perf_counter() - started) * 1e3


def _resident_mb() -> float:
    import psutil

    return float(psutil.Process().memory_info().rss / 1e6)


if __name__ == "__main__":
    print(json.dumps(asdict(_measure_here(Path(sys.argv[1]), int(sys.argv[2])))))
