"""One digest for all that decides a verdict: this package's code, its tables, the LaTeX parser's version.

A threshold is true for the rules that it was measured on, and for no others.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

from library.digest import canonical_json, digest_bytes


@lru_cache(maxsize=1)
def rules_digest() -> str:
    """`blake3:<64 hex>` over the names and digests of the gate's files. A change of any byte of them is another."""
    here = Path(__file__).parent
    files = sorted(path for suffix in ("*.py", "tables/*") for path in here.glob(suffix) if path.is_file())
    named: dict[str, str] = {path.relative_to(here).as_posix(): str(digest_bytes(path.read_bytes())) for path in files}
    return str(digest_bytes(canonical_json({"files": named, "pylatexenc": version("pylatexenc")})))
