"""Executions that leave a real log for a payload store: they replay, and nothing else changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import orjson
import pytest
from aiohttp.test_utils import TestClient, TestServer
from click.testing import CliRunner

from streams.api.server import make_app
from streams.app import open_audits, open_collector, open_payloads, open_replay, open_retention
from streams.cli import cli
from streams.collector.collect import collect
from streams.collector.core import retained_id
from streams.events.model import Event, NewEvent, PayloadRef
from streams.log.errors import BadBatch
from streams.payload.content import key_of
from streams.payload.port import JSON
from streams.replay.cutoff import Cutoff
from streams.replay.port import LogSource
from streams.replay.state import ReplayedState
from streams.retention.errors import DamagedArchive, RetentionLate
from streams.retention.port import LogPartition, Policy, WrittenArchive
from streams.retention.postgres import PostgresRetentionLog
from streams.retention.run import PartitionOutcome, RetentionPorts, drop, run
from streams.roles.projection_rebuild import rebuild_projections
from streams.settings import Settings
from tests.support.api.server import SCOPE, Stand, get, open_stand
from tests.support.log.databases import dsn, event, root_events
from tests.support.projector.executions import Story

pytestmark = pytest.mark.stack
# Ids of a time before the log's first month: the partition is event_past.
OLD, PARENT, CHILD, OPEN, KEEPER, CATALOG = (10_000 * number for number in range(1, 7))
_DROP_SLOT = """
SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = $1"""
EVENTS = 20
"""Of the one that may leave."""
ALL_CHANGES = """
SELECT count(*) FROM pg_logical_slot_peek_binary_changes(
  $1, NULL, NULL, 'proto_version', '1', 'publication_names', 'noetl_mirror', 'messages', 'false')
WHERE get_byte(data, 0) = ascii('I')"""


@dataclass(frozen=True, slots=True)
class House:
    """A log whose first partition has old executions, and its folder of objects."""

    settings: Settings
    stand: Stand
    folder: Path
    owner: asyncpg.Connection
    mirror: asyncpg.Connection
    slot: str
    payload: PayloadRef

    async def state(self, cutoff: Cutoff | None = None, execution_id: int = OLD) -> ReplayedState:
        async with open_replay(self.settings) as opened:
            return await opened.state(execution_id, SCOPE, cutoff)

    async def run(self) -> Sequence[PartitionOutcome]:
        async with self.retention() as ports:
            return await run(ports, lambda _: None)

    @asynccontextmanager
    async def retention(self) -> AsyncIterator[RetentionPorts]:
        """Open what archives, beside a mirror that carries everything."""
        async with open_retention(self.settings, slot=self.slot) as ports:
            mirror = asyncio.create_task(self._mirror())
            try:
                yield replace(ports, segment_bytes=2000)
            finally:
                mirror.cancel()
                await asyncio.gather(mirror, return_exceptions=True)

    async def _mirror(self) -> None:
        connection = await asyncpg.connect(dsn(self.settings, "mirror"))
        try:
            while True:
                await connection.execute(
                    "SELECT pg_replication_slot_advance($1, pg_current_wal_lsn())", self.slot
                )
        finally:
            await connection.close()

    async def rows(self, table: str, execution_id: int) -> int:
        found: int = await self.owner.fetchval(
            f"SELECT count(*) FROM noetl.{table} WHERE execution_id = $1", execution_id
        )
        return found

    def objects(self) -> set[str]:
        return {str(one.relative_to(self.folder)) for one in self.folder.rglob("sha256/*")}

    async def cli(self, *words: str) -> dict[str, Any]:
        """Run a command on this database; it starts an event loop of its own."""
        config = self.folder.parent / "streams.json.yaml"
        config.write_text(orjson.dumps(_as_file(self.settings)).decode())
        line = [*words, "--config", str(config), "--json"]
        done = await asyncio.to_thread(CliRunner().invoke, cli, line)
        assert done.exit_code == 0, (words, done.output, done.exception)
        found: dict[str, Any] = orjson.loads(done.stdout.splitlines()[-1])
        return found


@pytest.fixture
async def house(fresh_database: Settings, tmp_path: Path) -> AsyncIterator[House]:
    folder = tmp_path / "objects"
    store = {"backend": "local", "connection": {"path": str(folder)}}
    chosen = type(fresh_database.payload_store).model_validate(store)
    runtime = fresh_database.runtime.model_copy(
        update={"tenant_id": SCOPE.tenant_id, "organization_id": SCOPE.organization_id}
    )
    settings = fresh_database.model_copy(update={"payload_store": chosen, "runtime": runtime})
    owner = await asyncpg.connect(dsn(settings))
    mirror = await asyncpg.connect(dsn(settings, "mirror"))
    slot = f"retention_{uuid4().hex}"
    slots = (slot, f"{slot}_seen")
    try:
        for one in slots:
            await mirror.execute("SELECT pg_create_logical_replication_slot($1, 'pgoutput')", one)
        async with open_stand(settings) as stand, open_payloads(settings) as payloads:
            ref = await payloads.put(SCOPE, b'["rows"]', media_type=JSON)
            expired = await payloads.put(SCOPE, b'["expired"]', media_type=JSON)
            await _fill(stand, ref, expired)
            await payloads.delete(expired)
            yield House(settings, stand, folder, owner, mirror, slot, ref)
    finally:
        for one in slots:
            await mirror.execute(_DROP_SLOT, one)
        await mirror.close()
        await owner.close()


async def _fill(stand: Stand, ref: PayloadRef, expired: PayloadRef) -> None:
    """Append executions: one that may leave, and others that stay, each for another reason."""
    story, refs = Story(OLD), iter([ref, expired])
    for one in story.whole():
        carried = replace(one, payload_ref=next(refs)) if one.type == "frame.committed" else one
        await stand.log.store.append([carried])
    await stand.log.store.append([_expiry(story, retained_id(OLD, expired.sha256))])
    parent, child = Story(PARENT), Story(CHILD)
    for one in (parent.began(), parent.ended(result={"n": 1})):
        await stand.log.store.append([one])
    await stand.log.store.append([replace(child.began(), parent_execution_id=PARENT)])
    await stand.log.store.append([Story(OPEN).began()])
    for one in Story(KEEPER, tenant="keeper").whole():
        await stand.log.store.append([one])
    await stand.log.store.append([event(CATALOG, "catalog.registered", payload_ref=None)])
    await stand.project()


def _expiry(story: Story, result_id: int) -> NewEvent:
    meta = {"result_id": str(result_id), "reason": "manual"}
    return replace(story.event("result.expired", meta=meta), idempotency_key=f"end/{result_id}")


async def test_an_archived_execution_replays_to_the_same_checksum(house: House) -> None:
    events = await root_events(house.stand.log.store, OLD)
    before = [await house.state(cutoff) for cutoff in _cutoffs(events)]
    inserted = await house.mirror.fetchval(ALL_CHANGES, f"{house.slot}_seen")

    await house.cli("retention", "policy", "set", SCOPE.tenant_id, "--keep-days", "0")
    planned = await house.cli("retention", "run", "--dry-run")
    (past,) = planned["partitions"]
    assert (past["partition"], past["executions"], past["events"]) == ("event_past", 1, len(events))
    assert [(one["reason"], one["count"]) for one in past["staying"]] == [
        ("its tenant has no policy", 1),
        ("it has not ended", 2),
        ("its parent or a child stays", 1),
    ]
    (done,) = await house.run()
    assert (done.executions, done.events) == (1, len(events))

    assert [await house.rows("event", one) for one in (OLD, KEEPER)] == [0, 19]
    after = [await house.state(cutoff) for cutoff in _cutoffs(events)]
    assert {one.source for one in before} == {LogSource.LOG}
    assert {one.source for one in after} == {LogSource.ARCHIVE}
    assert [replace(one, source=LogSource.LOG) for one in after] == before
    # The mirror published what was appended, and nothing that was only moved.
    assert await house.mirror.fetchval(ALL_CHANGES, f"{house.slot}_seen") == inserted

    (archive,) = (await house.cli("retention", "list"))["archives"]
    assert (archive["executions"], archive["events"]) == (1, len(events))
    assert [one.executions for one in await house.run()] == [0]


def _cutoffs(events: Sequence[Event]) -> list[Cutoff]:
    at = events[7]
    return [Cutoff(), Cutoff(seq=3), Cutoff(event_id=at.event_id), Cutoff(time=at.ingest_time)]


@pytest.fixture
async def archived(house: House) -> House:
    """The house after a run."""
    await _set_policy(house)
    await house.run()
    return house


async def _set_policy(house: House) -> None:
    await PostgresRetentionLog(house.owner, slot=house.slot).set_policy(Policy(SCOPE.tenant_id, 0))


async def test_everything_that_reads_an_execution_reads_its_archive(
    archived: House, tmp_path: Path
) -> None:
    house, settings = archived, archived.settings
    async with open_audits(settings, payloads=True) as opened:
        report = await opened.audit.run(OLD, SCOPE)
    assert report.is_equal, report.checks
    assert "read from the archive" in report.check("log").detail
    async with TestClient(TestServer(make_app(house.stand.runtime))) as client:
        query = f"tenant_id=acme&organization_id=care&execution_id={OLD}"
        status, found = await get(client, f"/api/replay/state?{query}")
    assert (status, found["read_from"]) == (200, "archive")
    assert found["checksum"] == (await house.state()).checksum_of("all")
    file = str(tmp_path / "bundle")
    exported = await house.cli("bundle", "export", str(OLD), "--out", file)
    assert exported["checksum"] == found["checksum"]
    listed = await house.cli("execution", "events", str(OLD))
    assert len(listed["events"]) == report.seq

    rebuilt = await rebuild_projections(settings)
    assert rebuilt.broken == ()
    async with open_audits(settings, payloads=False) as opened:
        assert (await opened.audit.run(OLD, SCOPE)).is_equal


async def test_the_collector_keeps_what_an_archive_needs(archived: House) -> None:
    present = archived.objects()
    assert key_of(archived.payload) in present
    async with open_collector(archived.settings) as ports:
        report = await collect(ports, dry_run=True, verify=True)
    # The segments, the manifest and the payload.
    assert (report.objects, report.live, report.orphans) == (len(present), len(present), 0)
    assert report.is_whole


async def test_an_archived_execution_gets_no_events_and_others_leave_later(
    archived: House,
) -> None:
    store, story = archived.stand.log.store, Story(OPEN)
    with pytest.raises(BadBatch, match=f"execution {OLD} is archived"):
        await store.append([_expiry(Story(OLD), 7)])
    for one in (story.entered(), story.ended(result={"n": 1})):
        await store.append([replace(one, idempotency_key=f"later/{one.type}")])
    await archived.stand.project()
    before = await archived.state(execution_id=OPEN)

    (done,) = await archived.run()
    assert (done.executions, done.events, before.source) == (1, 3, LogSource.LOG)
    after = await archived.state(execution_id=OPEN)
    assert after == replace(before, source=LogSource.ARCHIVE)
    assert (await archived.state()).source is LogSource.ARCHIVE
    assert await archived.rows("event", KEEPER) == 19


async def test_an_interrupted_run_is_repeated_without_new_objects(house: House) -> None:
    class Interrupted(Exception):
        pass

    async def stop(partition: LogPartition, archives: Sequence[WrittenArchive]) -> Sequence[int]:
        raise Interrupted

    await _set_policy(house)
    async with house.retention() as ports:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ports.log, "detach", stop)
            with pytest.raises(Interrupted):
                await run(ports, lambda _: None)
    assert await house.rows("event", OLD) == EVENTS
    stored = house.objects()
    (done,) = await house.run()
    assert (done.executions, house.objects()) == (1, stored)
    assert (await house.state()).source is LogSource.ARCHIVE


async def test_nothing_leaves_before_the_mirror_has_it(house: House) -> None:
    await _set_policy(house)
    async with open_retention(house.settings, slot="of nobody") as ports:
        with pytest.raises(RetentionLate, match="does not exist"):
            await run(ports, lambda _: None)
    assert await house.rows("event", OLD) == EVENTS


async def test_a_changed_object_is_named_and_its_table_stays(archived: House) -> None:
    (number, table, objects) = await archived.owner.fetchrow(
        "SELECT archive_id, detached_table, objects FROM noetl.archive"
    )
    uri = objects.split("\n")[1]
    object_ = archived.folder / "acme/care/sha256" / uri.rsplit("/", 1)[1]
    data = object_.read_bytes()
    object_.write_bytes(data[:-7] + b"\0" + data[-6:])
    with pytest.raises(DamagedArchive, match=uri):
        await archived.state()
    async with archived.retention() as ports:
        with pytest.raises(DamagedArchive, match=uri):
            await drop(ports, number, dry_run=False, report=lambda _: None)
    object_.unlink()
    with pytest.raises(DamagedArchive, match="is missing"):
        await archived.state()

    object_.write_bytes(data)
    detached = f"SELECT to_regclass('noetl_detached.{table}')"
    assert await archived.owner.fetchval(detached) is not None
    async with archived.retention() as ports:
        await drop(ports, number, dry_run=False, report=lambda _: None)
    assert await archived.owner.fetchval(detached) is None
    assert (await archived.state()).source is LogSource.ARCHIVE


def _as_file(settings: Settings) -> dict[str, Any]:
    """Return the settings as a configuration file."""
    shown = settings.event_store.canonical_connection
    logins = {
        duty: {
            "user": shown.login(duty).user,
            "password": shown.login(duty).password.get_secret_value(),
        }
        for duty in ("owner", "append", "read", "project", "collect")
    }
    return {
        "event_store": {
            "canonical_connection": {
                "host": shown.host,
                "port": shown.port,
                "database": shown.database,
                "ssl_mode": shown.ssl_mode,
                "roles": logins,
            }
        },
        "serialization": settings.serialization.model_dump(mode="json", exclude_unset=True),
        "payload_store": settings.payload_store.model_dump(mode="json", exclude_unset=True),
        "runtime": {"tenant_id": SCOPE.tenant_id, "organization_id": SCOPE.organization_id},
    }
