"""Prints how the page's events are wired, as JSON: `python -m tests.ui.wiring FOLDER`.

Own process, since Gradio's import leaves warnings and event loops behind that are not ours.
"""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path
from typing import Any


def main(folder: str) -> None:
    from core.settings import load_settings
    from library.store import Library
    from tests.ui.doubles import WrittenEngine
    from ui import blocks
    from ui.access import Access
    from ui.page import Page, Watched

    with Library.open(Path(folder) / "library") as library:
        settings = load_settings(library=Path(folder) / "library")
        engine = WrittenEngine(settings, library)
        demo = blocks.build(Page(engine, Access(library.users), settings, Watched()))
        print(json.dumps([_event(fn) for fn in demo.fns.values()]))
        engine.close()


def _event(fn: Any) -> dict[str, Any]:
    return {
        "name": fn.fn.__name__ if fn.fn else "",
        "on": fn.targets[0][1] if fn.targets else "",
        "outputs": [block.elem_id or f"{type(block).__name__}-{block._id}" for block in fn.outputs],
        "listens": inspect.isasyncgenfunction(fn.fn),
        "queued": fn.queue,
        "group": fn.concurrency_id,
        "limit": fn.concurrency_limit,
        "mode": fn.trigger_mode,
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
