"""Ending a stack that another process supervises."""

from __future__ import annotations

from pathlib import Path

import psutil

from streams.data_folder import layout_of
from streams.local.lock import holder

# Longer than the slowest orderly end: Connect, then Kafka, each within its own bound.
_PATIENCE_SECONDS = 45.0


def shut_down(data: Path) -> bool:
    """Ask the supervisor of `data` to end its stack and wait for it; False if none was up.

    A supervisor that does not end in time is killed: its services die with it.
    """
    supervisor = holder(layout_of(data))
    if supervisor is None:
        return False
    family = [supervisor, *supervisor.children(recursive=True)]
    supervisor.terminate()
    try:
        supervisor.wait(_PATIENCE_SECONDS)
    except psutil.TimeoutExpired:
        supervisor.kill()
    psutil.wait_procs(family, timeout=_PATIENCE_SECONDS)
    return True
