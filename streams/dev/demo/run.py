"""The demo run: one trigger record, a playbook of six loops, and a check of every row."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import asyncpg

from streams.api.postgres import PostgresProjectionReader
from streams.app import Log, catalog_of, open_log, open_payloads, open_pool
from streams.clock import SystemClock
from streams.dev.bench.mock_server import Mock, MockWorld, mock_server
from streams.dev.bench.playbook_setup import author_dsn
from streams.dev.bench.row_check import RowCheck, check_rows
from streams.dev.demo.follow import ExecutionProgress, follow
from streams.dev.demo.mirror_check import MirrorCheck, check_mirror
from streams.events.model import Json, Root
from streams.kafka.event_reader import EventTopicReader
from streams.payload.port import Scope
from streams.playbook.parse import parse
from streams.resources import folder
from streams.settings import Settings
from streams.trigger.follow import Follower
from streams.trigger.kafka import KafkaTopicIds
from streams.trigger.lookup import LedgerReader
from streams.trigger.port import Origin
from streams.trigger.publish import publish

TOPIC, SCHEMA = "noetl.events.execution", "demo_pft"
STARTS_WITHIN_S = 60.0


class DemoProgress(Protocol):
    """Output of the demo's progress."""

    def say(self, text: str) -> None: ...
    def plan(self, steps: Sequence[str]) -> None: ...
    def show(self, view: ExecutionProgress) -> None: ...


@dataclass(frozen=True, slots=True)
class DemoOutcome:
    """Outcome and checks of the demo."""

    execution_id: int
    end: ExecutionProgress
    judgement: RowCheck
    requests: int
    mirrored: MirrorCheck
    run_s: float
    """From the trigger record to the last event."""

    @property
    def faults(self) -> tuple[str, ...]:
        """Return all faults."""
        found = [*self.judgement.faults("rows"), *self.mirrored.faults]
        if self.end.status != "COMPLETED":
            found.append(f"execution: it ended {self.end.status}: {self.end.error}")
        return tuple(found)

    def figures(self) -> dict[str, object]:
        """Return the figures of the run."""
        return {
            "execution_id": str(self.execution_id),
            "status": self.end.status,
            "requests": self.requests,
            "expected_rows": self.judgement.expected,
            "saved_rows": self.judgement.saved,
            "missing": self.judgement.missing,
            "doubled": self.judgement.doubled,
            "stages": len(self.end.stages),
            "frames": sum(stage.frames for stage in self.end.stages),
            "events": len(self.mirrored.events),
            "checksums_verified": self.mirrored.verified,
            "run_s": round(self.run_s, 2),
        }


async def run_demo(settings: Settings, world: MockWorld, shown: DemoProgress) -> DemoOutcome:
    """Run the PFT workload on the running stack, and check its rows and events.

    Raises:
        StreamsError: the run did not end.
    """
    bootstrap = settings.event_store.connection.url
    async with (
        mock_server(world) as mock,
        open_log(settings, role="demo", lanes=1) as log,
        open_pool(settings.event_store.canonical_connection.dsn("read")) as pool,
        EventTopicReader(bootstrap, [TOPIC], start="end") as reader,
    ):
        path = await _register(settings, log, shown)
        started = time.monotonic()
        execution_id = await _trigger(settings, log, pool, path, _workload(mock, world), shown.say)
        end = await follow(PostgresProjectionReader(pool), execution_id, shown.show)
        run_s = time.monotonic() - started
        judgement = await _judge(author_dsn(settings), mock)
        requests = (await mock.ledger())["requests"]
        mirrored = await check_mirror(log, reader, Root("execution", execution_id))
    return DemoOutcome(execution_id, end, judgement, requests, mirrored, run_s)


async def _register(settings: Settings, log: Log, shown: DemoProgress) -> str:
    """Register the playbook and return its path."""
    file = folder("examples") / "pft" / "playbook.yaml"
    text = file.read_text("utf-8")
    shown.plan([step.name for step in parse(text, str(file)).steps.values() if step.loop])
    scope = Scope(settings.runtime.tenant_id, settings.runtime.organization_id)
    async with open_payloads(settings) as payloads:
        entry = await catalog_of(log, payloads).register(scope, text)
    shown.say(f"playbook {entry.path} version {entry.version} is in the catalog")
    return entry.path


def _workload(mock: Mock, world: MockWorld) -> dict[str, Json]:
    return {
        "api_url": mock.url,
        "schema": SCHEMA,
        "facilities": world.facilities,
        "patients": world.patients,
    }


async def _trigger(
    settings: Settings,
    log: Log,
    pool: asyncpg.Pool,
    path: str,
    workload: dict[str, Json],
    say: Callable[[str], None],
) -> int:
    """Publish one trigger record and return the execution that it started."""
    bootstrap, clock = settings.event_store.connection.url, SystemClock()
    partition, offset = await publish(bootstrap, {"path": path, "workload": workload})
    say(f"one record on {partition.topic}, partition {partition.partition}, offset {offset}")
    topic_id = await KafkaTopicIds(bootstrap, clock).topic_id(partition.topic)
    follower = Follower(LedgerReader(pool), log.store, clock, timeout_s=STARTS_WITHIN_S)
    execution_id = await follower.execution(
        Origin(topic_id, partition.partition, offset, partition.topic)
    )
    say(f"it started execution {execution_id}")
    return execution_id


async def _judge(dsn: str, mock: Mock) -> RowCheck:
    """Compare the tables with the ledger; a row never requested is missing, too."""
    rows = sum((await mock.expected())["rows"].values())
    connection = await asyncpg.connect(dsn)
    try:
        found = await check_rows(connection, SCHEMA, await mock.served())
    except (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError):
        # The execution failed before it created its tables.
        found = RowCheck()
    finally:
        await connection.close()
    return replace(found, expected=rows, missing=found.missing + rows - found.expected)
