"""Keeps a role's process as small as what it holds: what large blocks took goes back at once."""

from __future__ import annotations

import ctypes
from contextlib import suppress

_MMAP_THRESHOLD, _ARENA_MAX = -3, -8
LARGE_BYTES, ARENAS = 256 * 1024, 2


def keep_small() -> None:
    """Tell glibc to map large blocks one by one, and threads to share few heaps.

    Left alone, it raises its bound for "large" with the first megabyte that is freed, and keeps
    the megabytes after it in the heap of whichever thread asked. Other libraries do without.
    """
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_THRESHOLD, LARGE_BYTES)
        mallopt(_ARENA_MAX, ARENAS)
