"""The status of a stack: its services with their current memory."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import orjson
import psutil

from streams.data_folder import Layout, layout_of
from streams.local.state import StackState
from streams.local.tier_stats import read_tiers


def describe(state: StackState) -> dict[str, Any]:
    """Return the output of `streams status --json`; no secrets."""
    layout = layout_of(state.data)
    return {
        "up": True,
        "phase": str(state.phase),
        "profile": state.profile,
        "data": str(state.data),
        "supervisor": {"pid": state.supervisor_pid, "memory_bytes": _memory(state.supervisor_pid)},
        "parts": [
            {
                "name": service.name,
                "state": str(service.state),
                "address": service.address or role_address(layout, service.name) or "",
                "pid": service.pid,
                "memory_bytes": _tree_memory(service.pid) if service.pid is not None else 0,
                "version": service.version,
                "restarts": service.restarts,
                "log": str(service.log),
            }
            for service in state.services
        ],
        "tiers": read_tiers(layout, (service.name for service in state.services)),
    }


def role_address(layout: Layout, role: str) -> str | None:
    """Return the address of a role that listens, or None."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        address = orjson.loads(layout.address(role).read_bytes())
        return str(address["url"]) if psutil.pid_exists(int(address["pid"])) else None
    return None


def _tree_memory(pid: int) -> int:
    """Sum the resident memory of a process and its children.

    Shared pages (Postgres' buffers) are counted once per process, as by `ps`.
    """
    with suppress(psutil.Error):
        children = psutil.Process(pid).children(recursive=True)
        return _memory(pid) + sum(_memory(child.pid) for child in children)
    return 0


def _memory(pid: int) -> int:
    with suppress(psutil.Error):
        return int(psutil.Process(pid).memory_info().rss)
    return 0
