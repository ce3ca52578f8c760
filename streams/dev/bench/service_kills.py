"""Kills (SIGKILL) of a stack's services, which its supervisor starts again."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from streams.errors import Refused, Unavailable
from streams.local.service import ServiceState
from streams.local.state import ServiceStatus, find_stack

RESTARTED_WITHIN_S = 120.0
POLL_S = 0.05


class NoSuchService(Refused):
    """The stack does not run the service, or there is no embedded stack."""


class NotRestarted(Unavailable):
    """A killed service did not return."""


class ServiceKills:
    """Kills services of the stack in a data folder."""

    def __init__(self, data: Path) -> None:
        self._data = data

    def service(self, name: str) -> ServiceStatus:
        """Return the status of a service.

        Raises:
            NoSuchService: the stack does not run it.
        """
        state = find_stack(self._data)
        for one in () if state is None else state.services:
            if one.name == name:
                return one
        raise NoSuchService(
            f"{name} does not run on an embedded stack in {self._data}; "
            "start one with `streams up`, or let the bench start it"
        )

    async def kill(self, name: str, *, when_dead: Callable[[], None] | None = None) -> float:
        """Kill a service when it is ready; return how long it took to be ready again.

        `when_dead` is called at its death, about a second before its successor opens anything.

        Raises:
            NotRestarted: it does not return.
        """
        before = await self._ready(name, lambda _: True)
        assert before.pid is not None
        os.kill(before.pid, signal.SIGKILL)
        began = time.monotonic()
        if when_dead is not None:
            await _death(before.pid)
            when_dead()
        await self._ready(name, lambda now: now.restarts > before.restarts)
        return time.monotonic() - began

    async def _ready(self, name: str, fits: Callable[[ServiceStatus], bool]) -> ServiceStatus:
        deadline = time.monotonic() + RESTARTED_WITHIN_S
        while time.monotonic() < deadline:
            now = self.service(name)
            if now.state is ServiceState.READY and fits(now):
                return now
            await asyncio.sleep(POLL_S)
        raise NotRestarted(f"{name} is not ready after {RESTARTED_WITHIN_S:.0f} s; see its log")


async def _death(pid: int) -> None:
    """Wait until a killed process has ended; its parent may not have noticed yet."""
    while True:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return
        except psutil.NoSuchProcess:
            return
        await asyncio.sleep(0.001)
