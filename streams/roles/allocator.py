"""glibc allocator settings that return the memory of large blocks at once."""

from __future__ import annotations

import ctypes
from contextlib import suppress

_MMAP_THRESHOLD, _ARENA_MAX = -3, -8
LARGE_BYTES, ARENAS = 256 * 1024, 2


def keep_small() -> None:
    """Make glibc map large blocks separately, and threads share few heaps.

    By default it raises the mmap threshold when the first large block is freed, and retains
    later ones in per-thread heaps. Does nothing with other C libraries.
    """
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_THRESHOLD, LARGE_BYTES)
        mallopt(_ARENA_MAX, ARENAS)
