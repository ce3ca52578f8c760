"""The supervisor of services: parallel start, restart after a crash, ordered stop."""

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
    """Runs a set of services until stopped."""

    def __init__(self, services: Sequence[Service], report: Report) -> None:
        self._services = {service.name: _Supervised(service, report) for service in services}

    async def start(self, *, patiently: bool = False) -> None:
        """Start every service and return when all are ready.

        With `patiently`, a service that fails is reported and restarted later.

        Raises:
            ServiceFailed: a service exited or was not ready in time; the caller stops the rest.
        """
        start = self._start_patiently if patiently else self._start
        starting = [
            asyncio.create_task(start(supervised)) for supervised in self._services.values()
        ]
        try:
            await asyncio.gather(*starting)
        finally:
            for task in starting:
                task.cancel()
            await asyncio.gather(*starting, return_exceptions=True)
        for supervised in self._services.values():
            supervised.watch()

    async def _start(self, supervised: _Supervised) -> None:
        needed = [
            self._services[name] for name in supervised.service.needs if supervised.service.waits
        ]
        supervised.report(ServiceState.WAITING)
        await supervised.service.before()
        await asyncio.gather(*(other.is_ready.wait() for other in needed))
        rotate(supervised.service.log)
        await supervised.start()

    async def _start_patiently(self, supervised: _Supervised) -> None:
        with suppress(ServiceFailed):
            await self._start(supervised)
        if not supervised.is_ready.is_set():
            await supervised.end_process()

    async def stop(self) -> None:
        """Stop every service, dependents first, each within its timeout."""
        for supervised in self._services.values():
            supervised.unwatch()
        ended = {name: asyncio.Event() for name in self._services}

        async def end(supervised: _Supervised) -> None:
            users = [other.service for other in self._services.values()]
            waiting = [
                ended[user.name].wait() for user in users if supervised.service.name in user.needs
            ]
            await asyncio.gather(*waiting)
            await supervised.stop()
            ended[supervised.service.name].set()

        await asyncio.gather(*(end(supervised) for supervised in self._services.values()))


class _Supervised:
    """One service and its current process."""

    def __init__(self, service: Service, report: Report) -> None:
        self.service = service
        self.is_ready = asyncio.Event()
        self._report = report
        self._process: asyncio.subprocess.Process | None = None
        self._restarts = 0
        self._watching: asyncio.Task[None] | None = None

    def report(self, state: ServiceState, detail: str = "") -> None:
        pid = self._process.pid if self._process is not None else None
        self._report(ServiceReport(self.service.name, state, pid, self._restarts, detail))

    async def start(self) -> None:
        """Start the process and wait until it is ready."""
        began = time.monotonic()
        self._process = await spawn(self.service)
        self.report(ServiceState.STARTING)
        while not await self._answers():
            if self._process.returncode is not None:
                raise self._failure(f"exited with code {self._process.returncode} at start")
            if time.monotonic() - began > self.service.start_seconds:
                raise self._failure(f"was not ready after {self.service.start_seconds:.0f} s")
            await asyncio.sleep(_PROBE_SECONDS)
        self.is_ready.set()
        self.report(ServiceState.READY, f"{time.monotonic() - began:.1f} s")

    async def _answers(self) -> bool:
        # Any exception means "not yet": the deadline and the process's exit decide failure.
        with suppress(Exception):
            return await asyncio.wait_for(self.service.ready(), _PROBE_TIMEOUT_SECONDS)
        return False

    def _failure(self, what: str) -> ServiceFailed:
        self.report(ServiceState.FAILED, what)
        return ServiceFailed(
            self.service.name, what, self.service.log, last_lines(self.service.log)
        )

    def watch(self) -> None:
        self._watching = asyncio.create_task(
            self._restart_loop(), name=f"watch {self.service.name}"
        )

    def unwatch(self) -> None:
        if self._watching is not None:
            self._watching.cancel()

    async def _restart_loop(self) -> None:
        """Restart the process whenever it exits, with back-off."""
        backoff = Backoff()
        while True:
            assert self._process is not None
            began = time.monotonic()
            code = await self._process.wait()
            self.is_ready.clear()
            delay = backoff.after_running(time.monotonic() - began)
            self._restarts += 1
            self.report(ServiceState.RESTARTING, f"exited with code {code}, retry in {delay:.1f} s")
            await asyncio.sleep(delay)
            # The start may fail again, or fork may fail: both are retried.
            with suppress(ServiceFailed, OSError):
                await self.start()
            if not self.is_ready.is_set():
                await self.end_process()

    async def stop(self) -> None:
        if self._watching is not None:
            await asyncio.gather(self._watching, return_exceptions=True)
        await self.end_process()
        await self.service.after()
        self.report(ServiceState.STOPPED)

    async def end_process(self) -> None:
        """Send the stop signal, and kill the process after the timeout."""
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
