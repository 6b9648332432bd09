"""Memory for whole blobs: large pages, nothing zeroed twice, aligned for tensors.

A blob of 94 MB read into a `bytearray` costs 23,000 page faults and a pass that writes zeros, four times the reading
itself (docs/performance.md). numpy asks the kernel for large pages from 4 MiB on, and leaves the memory as it is.
"""

from __future__ import annotations

LARGE = 4 << 20  # bytes; numpy advises large pages from here on (`alloc.cpp`, NPY_USE_HUGEPAGE)
ALIGNMENT = 64  # bytes: a cache line, and no vector register is wider


def room_for(size: int) -> memoryview:
    """`size` writable bytes of memory of our own; small ones are zeros, large ones hold anything and are aligned."""
    if size < LARGE:
        return memoryview(bytearray(size))
    import numpy as np  # a tenth of a second: only for whoever reads large blobs

    raw = np.empty(size + ALIGNMENT, dtype=np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw.data[start : start + size]
