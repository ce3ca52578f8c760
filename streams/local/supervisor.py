"""Keeps services alive: starts them side by side, restarts what dies, stops them in order."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from streams.local.backoff import Backoff
from streams.local.errors import ServiceFailed
from streams.local.process import last_lines, rotate, spawn
from streams.local.service import Service, ServiceReport, ServiceState

Report = Callable[[ServiceReport], None]
_PROBE_SECONDS = 0.1
_PROBE_TIMEOUT_SECONDS = 5.0


class Supervisor:
    """Runs a set of services until it is asked to stop."""

    def __init__(self, services: Sequence[Service], report: Report) -> None:
        self._lives = {service.name: _Life(service, report) for service in services}

    async def start(self, *, patiently: bool = False) -> None:
        """Start every service and return when all are ready.

        `patiently` tells of a service that fails, and starts it again later, like any that dies.

        Raises:
            ServiceFailed: one of them ended or was not ready in time; the caller stops the rest.
        """
        start = self._start_patiently if patiently else self._start
        starting = [asyncio.create_task(start(life)) for life in self._lives.values()]
        try:
            await asyncio.gather(*starting)
        finally:
            for task in starting:
                task.cancel()
            await asyncio.gather(*starting, return_exceptions=True)
        for life in self._lives.values():
            life.watch()

    async def _start(self, life: _Life) -> None:
        needed = [self._lives[name] for name in life.service.needs if life.service.waits]
        life.say(ServiceState.WAITING)
        await life.service.before()
        await asyncio.gather(*(other.is_ready.wait() for other in needed))
        rotate(life.service.log)
        await life.start()

    async def _start_patiently(self, life: _Life) -> None:
        with suppress(ServiceFailed):
            await self._start(life)
        if not life.is_ready.is_set():
            await life.end_process()

    async def stop(self) -> None:
        """Stop every service, those first that others do not need, each within its time."""
        for life in self._lives.values():
            life.unwatch()
        ended = {name: asyncio.Event() for name in self._lives}

        async def end(life: _Life) -> None:
            users = [other.service for other in self._lives.values()]
            waiting = [ended[user.name].wait() for user in users if life.service.name in user.needs]
            await asyncio.gather(*waiting)
            await life.stop()
            ended[life.service.name].set()

        await asyncio.gather(*(end(life) for life in self._lives.values()))


class _Life:
    """One service and the process that currently is it."""

    def __init__(self, service: Service, report: Report) -> None:
        self.service = service
        self.is_ready = asyncio.Event()
        self._report = report
        self._process: asyncio.subprocess.Process | None = None
        self._restarts = 0
        self._watching: asyncio.Task[None] | None = None

    def say(self, state: ServiceState, detail: str = "") -> None:
        pid = self._process.pid if self._process is not None else None
        self._report(ServiceReport(self.service.name, state, pid, self._restarts, detail))

    async def start(self) -> None:
        """Start the process and wait until it answers."""
        began = time.monotonic()
        self._process = await spawn(self.service)
        self.say(ServiceState.STARTING)
        while not await self._answers():
            if self._process.returncode is not None:
                raise self._failure(f"ended with code {self._process.returncode} at start")
            if time.monotonic() - began > self.service.start_seconds:
                raise self._failure(f"was not ready after {self.service.start_seconds:.0f} s")
            await asyncio.sleep(_PROBE_SECONDS)
        self.is_ready.set()
        self.say(ServiceState.READY, f"{time.monotonic() - began:.1f} s")

    async def _answers(self) -> bool:
        # Whatever a client raises while nothing listens yet means "not yet": the deadline
        # and the process's own end are what decide that it never will.
        with suppress(Exception):
            return await asyncio.wait_for(self.service.ready(), _PROBE_TIMEOUT_SECONDS)
        return False

    def _failure(self, what: str) -> ServiceFailed:
        self.say(ServiceState.FAILED, what)
        return ServiceFailed(
            self.service.name, what, self.service.log, last_lines(self.service.log)
        )

    def watch(self) -> None:
        self._watching = asyncio.create_task(self._keep_alive(), name=f"watch {self.service.name}")

    def unwatch(self) -> None:
        if self._watching is not None:
            self._watching.cancel()

    async def _keep_alive(self) -> None:
        """Start the process again whenever it ends, waiting longer each time."""
        backoff = Backoff()
        while True:
            assert self._process is not None
            began = time.monotonic()
            code = await self._process.wait()
            self.is_ready.clear()
            delay = backoff.after_running(time.monotonic() - began)
            self._restarts += 1
            self.say(ServiceState.RESTARTING, f"ended with code {code}, again in {delay:.1f} s")
            await asyncio.sleep(delay)
            # It may fail again, or the machine may have no process to spare: both pass.
            with suppress(ServiceFailed, OSError):
                await self.start()
            if not self.is_ready.is_set():
                await self.end_process()

    async def stop(self) -> None:
        if self._watching is not None:
            await asyncio.gather(self._watching, return_exceptions=True)
        await self.end_process()
        self.say(ServiceState.STOPPED)

    async def end_process(self) -> None:
        """Ask the process to end, and end it when it has not within its time."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            process.send_signal(self.service.stop_signal)
        try:
            await asyncio.wait_for(process.wait(), self.service.stop_seconds)
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.send_signal(self.service.orphan_signal)
            await process.wait()
