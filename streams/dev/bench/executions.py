"""Executions started through the trigger topic and followed in the log."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import asyncpg
import orjson
from aiokafka import AIOKafkaProducer

from streams.errors import Unavailable
from streams.kafka.clients import idempotent_producer
from streams.settings import Settings

TRIGGERS = "noetl.triggers"
POLL_S, STARTED_WITHIN_S = 0.2, 60.0
EXECUTION = "SELECT execution_id FROM noetl.trigger_key WHERE tenant_id = $1 AND trigger_key = $2"
HEAD = "SELECT seq, terminal FROM noetl.root_head WHERE root_id = $1"
LAST = """
SELECT event_type, status, error, ingest_time FROM noetl.event
WHERE root_id = $1 AND event_type IN
  ('playbook.completed', 'playbook.failed', 'execution.cancelled', 'execution.suspended')
ORDER BY seq DESC LIMIT 1"""

Progress = Callable[[int], None]
"""Called with the number of events that the execution has."""


class ExecutionStalled(Unavailable):
    """An execution does not start, or makes no progress."""


@dataclass(frozen=True, slots=True)
class ExecutionEnd:
    """The outcome of an execution, and its duration since the trigger."""

    execution_id: int
    status: str
    error: str | None
    wall_s: float


class Executions:
    """Starts executions and waits for them; `connection` may read the log."""

    def __init__(
        self, settings: Settings, producer: AIOKafkaProducer, connection: asyncpg.Connection
    ) -> None:
        self._tenant = settings.runtime.tenant_id
        self._producer, self._connection = producer, connection

    @property
    def connection(self) -> asyncpg.Connection:
        """A connection that may read the log."""
        return self._connection

    async def publish(self, path: str, workload: Mapping[str, Any] | None = None) -> str:
        """Publish one trigger record and return its key once it is durable."""
        key = f"bench-{uuid4().hex}"
        record = {"path": path, "workload": dict(workload or {}), "key": key}
        await self._producer.send_and_wait(TRIGGERS, orjson.dumps(record), key=key.encode())
        return key

    async def publish_all(self, path: str, keys: Sequence[str]) -> None:
        """Publish a trigger record for each key; return once all are durable."""
        records = [(key, {"path": path, "workload": {}, "key": key}) for key in keys]
        sent = [
            await self._producer.send(TRIGGERS, orjson.dumps(record), key=key.encode())
            for key, record in records
        ]
        await asyncio.gather(*sent)

    async def find(self, key: str) -> int:
        """Wait for the execution of a trigger and return it.

        Raises:
            ExecutionStalled: it does not start.
        """
        until = time.monotonic() + STARTED_WITHIN_S
        while time.monotonic() < until:
            found = await self._connection.fetchval(EXECUTION, self._tenant, key)
            if found is not None:
                return int(found)
            await asyncio.sleep(POLL_S)
        raise ExecutionStalled(
            f"a trigger record with key {key} started nothing within {STARTED_WITHIN_S:.0f} s; "
            "check that the trigger role runs (`streams status`), and the dead letters"
        )

    async def run(
        self,
        path: str,
        workload: Mapping[str, Any],
        *,
        stalled_s: float = 120.0,
        progress: Progress = lambda _: None,
    ) -> ExecutionEnd:
        """Start one and wait for its end.

        Raises:
            ExecutionStalled: it does not start, or has no new event for `stalled_s`.
        """
        started = time.monotonic()
        key = await self.publish(path, workload)
        return await self.end(key, stalled_s=stalled_s, progress=progress, started=started)

    async def end(
        self,
        key: str,
        *,
        stalled_s: float = 120.0,
        progress: Progress = lambda _: None,
        started: float | None = None,
    ) -> ExecutionEnd:
        """Wait for the end of a published trigger's execution.

        Raises:
            ExecutionStalled: it does not start, or has no new event for `stalled_s`.
        """
        started = time.monotonic() if started is None else started
        execution_id = await self.find(key)
        await self._wait(execution_id, stalled_s, progress)
        last = await self._connection.fetchrow(LAST, execution_id)
        assert last is not None
        return ExecutionEnd(
            execution_id,
            last["status"] or last["event_type"],
            last["error"],
            time.monotonic() - started,
        )

    async def _wait(self, execution_id: int, stalled_s: float, progress: Progress) -> None:
        seen, moved_at = 0, time.monotonic()
        while True:
            head = await self._connection.fetchrow(HEAD, execution_id)
            assert head is not None
            if head["terminal"]:
                return
            if head["seq"] != seen:
                seen, moved_at = head["seq"], time.monotonic()
                progress(seen)
            elif time.monotonic() - moved_at > stalled_s:
                raise ExecutionStalled(
                    f"execution {execution_id} has had no new event for {stalled_s:.0f} s after "
                    f"its event {seen}; see `streams status` and the logs of its roles"
                )
            await asyncio.sleep(POLL_S)


@asynccontextmanager
async def open_executions(settings: Settings) -> AsyncIterator[Executions]:
    """Connect to the trigger topic and to the log."""
    producer = idempotent_producer(settings.event_store.connection.url)
    connection = await asyncpg.connect(settings.event_store.canonical_connection.dsn("read"))
    try:
        await producer.start()
        try:
            yield Executions(settings, producer, connection)
        finally:
            await producer.stop()
    finally:
        await connection.close()
