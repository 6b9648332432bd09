"""The most memory that a stretch of work took: resident set on a CPU, the allocator's count on CUDA. Knows no model."""

from __future__ import annotations

import gc
import threading
from contextlib import suppress
from pathlib import Path

import psutil
import torch

from core.books.memory import give_back

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class Peak:
    """`restart` begins a stretch, `read` gives its peak in bytes.

    On Linux the kernel keeps the resident set's peak, to the page; elsewhere a thread samples every 5 ms. `restart`
    collects garbage and hands free memory back first, so that one stretch does not pay for the one before.
    """

    def __init__(self, device: torch.device) -> None:
        self._cuda = device if device.type == "cuda" else None
        self._process = psutil.Process()
        self._kernel = False
        self._highest = 0
        self.restart()
        self.method = "cuda allocator" if self._cuda else "VmHWM" if self._kernel else "sampled resident set"
        if not self._cuda and not self._kernel:
            threading.Thread(target=self._sample, daemon=True).start()

    def restart(self) -> int:
        """Bytes held at the start of the stretch."""
        gc.collect()
        give_back()
        if self._cuda is not None:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats(self._cuda)
            return int(torch.cuda.memory_allocated(self._cuda))
        with suppress(OSError):
            _RESET.write_text("5")
            self._kernel = True
        self._highest = int(self._process.memory_info().rss)
        return self._highest

    def read(self) -> int:
        if self._cuda is not None:
            return int(torch.cuda.max_memory_allocated(self._cuda))
        if self._kernel:
            for line in _STATUS.read_text().splitlines():
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
        return max(self._highest, int(self._process.memory_info().rss))

    def _sample(self) -> None:
        pause = threading.Event()
        while not pause.wait(0.005):
            self._highest = max(self._highest, int(self._process.memory_info().rss))
