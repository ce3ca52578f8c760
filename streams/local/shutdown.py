"""Ending a stack that another process supervises."""

from __future__ import annotations

from pathlib import Path

import psutil

from streams.local.state import StackState, read_supervised

# Longer than the slowest orderly end: Connect, then Kafka, each within its own bound.
_PATIENCE_SECONDS = 45.0


def shut_down(data: Path) -> bool:
    """Ask the supervisor of `data` to end its stack and wait for it; False if none was up.

    A supervisor that does not end in time is killed: its parts die with it.
    """
    state = read_supervised(data)
    if state is None:
        return False
    processes = _processes(state)
    supervisor = processes[0]
    supervisor.terminate()
    try:
        supervisor.wait(_PATIENCE_SECONDS)
    except psutil.TimeoutExpired:
        supervisor.kill()
    psutil.wait_procs(processes, timeout=_PATIENCE_SECONDS)
    return True


def _processes(state: StackState) -> list[psutil.Process]:
    supervisor = psutil.Process(state.supervisor_pid)
    return [supervisor, *supervisor.children(recursive=True)]
