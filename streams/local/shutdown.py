"""Shutdown of a stack that another process supervises."""

from __future__ import annotations

from pathlib import Path

import psutil

from streams.data_folder import layout_of
from streams.local.lock import holder

# Longer than the slowest orderly stop: Connect, then Kafka, each with its own timeout.
_STOP_SECONDS = 45.0


def shut_down(data: Path) -> bool:
    """Signal the supervisor of `data` to stop its stack and wait; False if none was up.

    A supervisor that does not exit in time is killed, and its services with it.
    """
    supervisor = holder(layout_of(data))
    if supervisor is None:
        return False
    processes = [supervisor, *supervisor.children(recursive=True)]
    supervisor.terminate()
    try:
        supervisor.wait(_STOP_SECONDS)
    except psutil.TimeoutExpired:
        supervisor.kill()
    psutil.wait_procs(processes, timeout=_STOP_SECONDS)
    return True
