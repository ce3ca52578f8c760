"""The embedded stack: real Postgres, Kafka, Connect and S3 in one data folder."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO

import psutil

from streams.data_folder import layout_of
from streams.errors import StreamsError
from streams.local.assembly import PROFILES, Assembly, assemble
from streams.local.disk_space import check_room, within
from streams.local.lock import hold, start_of, still_held
from streams.local.roles import role_services
from streams.local.service import Service, ServiceReport
from streams.local.state import Phase, ServiceStatus, StackState, write_state
from streams.local.supervisor import Supervisor

_GUARD_PAUSE_S = 5.0
_PARTITIONS_S, _PARTITIONS_RETRY_S = 6 * 3600.0, 60.0
_NEEDED_BYTES = 1024 * 2**20
_FOLDER_SECONDS = 2.0
Say = Callable[[str], None]
Report = Callable[[ServiceReport], None]
Prepare = Callable[[StackState, Say], Awaitable[None]]


def _ignore(_: object) -> None:
    """Report to nobody."""


async def _prepare(state: StackState, say: Say) -> None:
    """Make the servers a stack; imported late, since it reaches into rooms `down` never needs."""
    from streams.local.prepare import prepare

    await prepare(state, say)


class Stack:
    """Starts the services of one data folder, supervises them while this process lives.

    The processes die with the one that holds this object, however it dies. `prepare` is
    what turns running servers into a usable stack (schema, topics, connector). `roles` says
    how many processes of each of our roles run on it; none by default.
    """

    def __init__(
        self,
        data: Path,
        *,
        profile: str = "core",
        ports: Mapping[str, int] | None = None,
        roles: Mapping[str, int] | None = None,
        say: Say = _ignore,
        report: Report = _ignore,
        prepare: Prepare = _prepare,
        sinks: bool = True,
    ) -> None:
        assert profile in PROFILES
        self._layout = layout_of(data)
        self._profile = profile
        self._ports = dict(ports or {})
        self._role_services: tuple[Service, ...] = role_services(self._layout, roles or {})
        self._say = say
        self._report = report
        self._prepare = prepare
        self._has_sinks = sinks and profile == "full"
        self._lock: IO[bytes] | None = None
        self._assembly: Assembly | None = None
        self._supervisor: Supervisor | None = None
        self._roles: Supervisor | None = None
        self._mending: tuple[asyncio.Task[None], ...] = ()
        self._state: StackState | None = None

    async def start(self) -> StackState:
        """Bring every service up, make the stack usable, and return how to reach it.

        Raises:
            StackAlreadyUp: another process supervises this data folder.
            Unavailable: something it needs is missing; nothing is left running.
        """
        with within(self._layout.data, _NEEDED_BYTES):
            self._lock = hold(self._layout)
            try:
                await self._start()
            except BaseException:
                await self.stop()
                raise
        assert self._state is not None
        return self._state

    async def _start(self) -> None:
        check_room(self._layout.data, _NEEDED_BYTES)
        self._assembly = assembly = await self._assemble()
        me = psutil.Process()
        self._state = StackState(
            data=self._layout.data,
            profile=self._profile,
            phase=Phase.STARTING,
            supervisor_pid=me.pid,
            supervisor_started_at=start_of(me),
            postgres=assembly.postgres,
            kafka=assembly.kafka,
            connect=assembly.connect,
            s3=assembly.s3,
            registry=assembly.registry,
            services=tuple(
                ServiceStatus(service.name, service.version, service.address, service.log)
                for service in (*assembly.services, *self._role_services)
            ),
        )
        write_state(self._state)
        self._supervisor = Supervisor(assembly.services, self._note)
        await self._supervisor.start()
        await self._prepare(self._state, self._say)
        if self._has_sinks:
            from streams.local.prepare import start_analytics

            await start_analytics(self._state, self._say)
        self._mending = (
            asyncio.create_task(self._end_hanging_transactions(), name="end hanging transactions"),
            asyncio.create_task(self._restart_failures(), name="restart failed connectors"),
        )
        # Roles look for a ready stack. One that fails is reported, and started again: whoever
        # mends it need not begin with the servers.
        self._enter(Phase.READY)
        self._roles = Supervisor(self._role_services, self._note)
        await self._roles.start(patiently=True)

    async def _restart_failures(self) -> None:
        from streams.local.prepare import restart_failed_connectors

        assert self._state is not None
        await restart_failed_connectors(self._state, self._say)

    async def _end_hanging_transactions(self) -> None:
        from streams.mirror.hanging import keep_ending

        assert self._state is not None
        await keep_ending(self._state.kafka.bootstrap, self._say)

    async def _assemble(self) -> Assembly:
        """Assemble in a thread, which is asked to end when nobody waits for it any more."""
        stop = threading.Event()
        try:
            return await asyncio.to_thread(
                assemble, self._layout, self._profile, self._ports, self._say, stop
            )
        finally:
            stop.set()

    async def folder_deleted(self) -> None:
        """Return when the data folder is no longer ours: someone deleted it under a live stack."""
        # Nothing announces this, so it is looked for.
        while self._lock is None or still_held(self._layout, self._lock):  # noqa: ASYNC110
            await asyncio.sleep(_FOLDER_SECONDS)

    async def make_partitions(self) -> None:
        """Make the log's partitions ahead of need, now and every few hours, until cancelled."""
        from streams.log.partitions import make_ahead

        assert self._state is not None
        dsn = self._state.postgres.dsn("noetl_owner")
        while True:
            try:
                if made := await make_ahead(dsn):
                    self._say(f"log: made {made} partitions ahead of need")
                await asyncio.sleep(_PARTITIONS_S)
            except StreamsError as error:
                self._say(f"log: {error}")
                await asyncio.sleep(_PARTITIONS_RETRY_S)

    async def guard_mirror(self) -> None:
        """Say each alarm of the mirror as it begins and ends, until cancelled."""
        from streams.local.settings import load_own
        from streams.mirror.watch import report_alarms

        assert self._state is not None
        settings = load_own(self._state).settings
        while True:
            try:
                await report_alarms(settings, self._say)
            except Exception as error:  # noqa: BLE001 - a guard that dies in silence is none
                self._say(f"mirror: the guard stumbled and goes on: {error!r}")
                await asyncio.sleep(_GUARD_PAUSE_S)

    async def stop(self) -> None:
        """End every service in order and let go of the data folder; harmless when nothing runs."""
        for task in self._mending:
            task.cancel()
        await asyncio.gather(*self._mending, return_exceptions=True)
        self._mending = ()
        if self._supervisor is not None:
            # The folder may be gone; the services are ended all the same.
            with suppress(OSError):
                self._enter(Phase.STOPPING)
            if self._roles is not None:
                await self._roles.stop()
                self._roles = None
            await self._supervisor.stop()
            self._supervisor = None
        if self._assembly is not None:
            self._assembly.postgres_data.close()
            self._assembly = None
        if self._state is not None:
            self._layout.state.unlink(missing_ok=True)
            self._state = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _enter(self, phase: Phase) -> None:
        assert self._state is not None
        self._state = replace(self._state, phase=phase)
        write_state(self._state)

    def _note(self, report: ServiceReport) -> None:
        """Keep the state file true while services come and go."""
        assert self._state is not None
        known = next(service for service in self._state.services if service.name == report.service)
        changed = replace(known, state=report.state, pid=report.pid, restarts=report.restarts)
        self._state = self._state.with_service(changed)
        # On a full disk the file goes stale; the services are still looked after.
        with suppress(OSError):
            write_state(self._state)
        self._report(report)


@asynccontextmanager
async def running(
    data: Path,
    *,
    profile: str = "core",
    roles: Mapping[str, int] | None = None,
    sinks: bool = True,
) -> AsyncIterator[StackState]:
    """Run a stack for the length of a block: `async with running(folder) as state`."""
    stack = Stack(data, profile=profile, roles=roles, sinks=sinks)
    state = await stack.start()
    try:
        yield state
    finally:
        await stack.stop()
