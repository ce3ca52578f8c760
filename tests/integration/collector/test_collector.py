"""The collector on a real log: what ends, what goes, what stays, and what it refuses."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from streams.app import Log, open_log
from streams.cli import cli
from streams.collector.collect import OWNER_KEY, CollectionReport, collect
from streams.collector.errors import BucketOfAnother, CollectorBusy, GraceTooShort
from streams.collector.port import CollectorPorts
from streams.collector.postgres import open_ledger
from streams.dev.bench.collect import bench_collect
from streams.events.model import PayloadRef
from streams.payload.arrow.rows import encode_rows
from streams.payload.content import key_of, reference_json, trash_key
from streams.payload.objects.local import LocalObjects
from streams.payload.port import JSON, Scope
from streams.payload.store import ContentStore
from streams.settings import Settings
from tests.conftest import make_event
from tests.support.log.databases import settled

pytestmark = pytest.mark.stack

ACME = Scope("acme", "care")
HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class House:
    """A log and a folder of objects of a test's own, whose files can be made old."""

    log: Log
    ports: CollectorPorts
    store: ContentStore
    folder: Path

    async def put(self, data: bytes, *, hours_old: float = 9.0) -> PayloadRef:
        ref = await self.store.put(ACME, data, media_type=JSON)
        self.age(key_of(ref), hours_old)
        return ref

    def age(self, key: str, hours: float) -> None:
        then = time.time() - 3600 * hours
        os.utime(self.folder / key, (then, then))

    async def execution(self, *events: dict[str, Any], end: bool = True, **first: Any) -> int:
        """Append the events of one execution and return its id."""
        root = self.log.ids.next()
        await self.log.store.append([make_event(root, **first)])
        for fields in events:
            await self.log.store.append([make_event(root, **fields)])
        if end:
            await self.log.store.append([make_event(root, "playbook.completed", status="OK")])
        return root

    def stored(self, ref: PayloadRef, **meta: Any) -> dict[str, Any]:
        fields = {"result_id": str(self.log.ids.next()), "store": "object", "scope": "execution"}
        return {
            "type": "result.stored",
            "node_name": "fetch",
            "meta": fields | meta,
            "payload_ref": ref,
        }

    async def collect(self, **options: Any) -> CollectionReport:
        chosen: dict[str, Any] = {"grace": HOUR, "claim": True, **options}
        await settled(self.log.pool)
        return await collect(self.ports, **chosen)


@asynccontextmanager
async def open_house(settings: Settings, folder: Path) -> AsyncIterator[House]:
    """Yield a house on this database."""
    dsn = settings.event_store.canonical_connection.dsn("collect")
    shelves = LocalObjects(folder)
    async with open_log(settings, role="test") as log, open_ledger(dsn) as ledger:
        store = ContentStore(shelves, known_s=0)
        yield House(log, CollectorPorts(ledger, log.store, shelves), store, folder)


@pytest.fixture
async def house(fresh_database: Settings, tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(fresh_database, tmp_path) as house:
        yield house


def completed(
    ref: PayloadRef | None = None, result: Any = None, command_id: str = "5"
) -> dict[str, Any]:
    return {
        "type": "command.completed",
        "node_name": "fetch",
        "status": "success",
        "meta": {"command_id": command_id, "attempt": 1, "worker": "w"},
        "result": result,
        "payload_ref": ref,
    }


async def test_an_orphan_goes_by_way_of_the_trash(house: House) -> None:
    orphan, young = await house.put(b"orphan"), await house.put(b"young", hours_old=0.1)
    first = await house.collect()
    assert (first.orphans, first.young, first.trashed, first.purged) == (2, 1, 1, 0)
    assert await house.store.get(orphan) == b"orphan"
    house.age(trash_key(key_of(orphan)), 2)
    second = await house.collect()
    assert (second.purged, second.in_trash) == (1, 0)
    assert not await house.store.exists(orphan)
    assert await house.store.exists(young)


async def test_a_dry_run_changes_nothing(house: House) -> None:
    orphan, ended = await house.put(b"orphan"), await house.put(b"ended")
    await house.execution(house.stored(ended, expires_at="2020-01-01T00:00:00.000Z"))
    for _ in range(2):
        report = await house.collect(dry_run=True)
        assert (report.expired, report.orphans, report.trashed) == ({"ttl": 1}, 2, 2)
    assert sorted(str(p.relative_to(house.folder)) for p in house.folder.rglob("*/sha256/*")) == (
        sorted([key_of(orphan), key_of(ended)])
    )
    assert not (house.folder / OWNER_KEY).exists()
    report = await house.collect()
    assert (report.expired, report.orphans, report.trashed) == ({"ttl": 1}, 2, 2)


async def test_references_anywhere_in_an_event_keep_a_payload(house: House) -> None:
    own, inside, digest = [await house.put(text) for text in (b"own", b"inside", b"digest")]
    linked, artifact, row = [await house.put(text) for text in (b"linked", b"artifact", b"row")]
    document = await house.put(orjson.dumps({"deep": {"ref": reference_json(linked)}}))
    rows = encode_rows([{"kept": reference_json(artifact)}, {"kept": {"sha256": row.sha256}}])
    frame = await house.put(rows.data)
    await house.execution(
        completed(own, {"data": {"ref": reference_json(inside), "meta": {"sha256": digest.sha256}}})
    )
    await house.execution(completed(document))
    await house.execution(completed(frame))
    orphan = await house.put(b"orphan")
    report = await house.collect()
    assert (report.objects, report.live, report.trashed) == (9, 8, 1)
    assert report.dangling_count == 0
    house.age(trash_key(key_of(orphan)), 2)
    assert (await house.collect()).purged == 1
    for ref in (own, inside, digest, linked, artifact, row, document, frame):
        assert await house.store.exists(ref)


async def test_a_result_s_end_is_an_event_and_its_payload_goes_later(house: House) -> None:
    over, other = await house.put(b"over"), await house.put(b"shared by two executions")
    past = {"expires_at": "2020-01-01T00:00:00.000Z"}
    fields = {"ref": {"meta": {"sha256": over.sha256}}}
    root = await house.execution(
        completed(None, fields), house.stored(over, **past), house.stored(other, **past)
    )
    await house.execution(house.stored(other, scope="permanent"))
    report = await house.collect()
    assert (report.expired, report.trashed, report.live) == ({"ttl": 2}, 1, 1)
    ends = [
        event
        async for event in house.log.store.read_root(make_event(root).root)
        if event.type == "result.expired"
    ]
    assert [end.meta["reason"] for end in ends] == ["ttl", "ttl"]
    assert (await house.collect()).expired == {}
    house.age(trash_key(key_of(over)), 2)
    await house.collect()
    assert not await house.store.exists(over)
    assert await house.store.get(other) == b"shared by two executions"


async def test_the_input_of_a_step_does_not_keep_an_expired_result(house: House) -> None:
    result = await house.put(b"expired")
    named = orjson.dumps({"steps": {"fetch": {"meta": {"sha256": result.sha256}}}})
    document = await house.put(named)
    ends = house.stored(result, expires_at="2020-01-01T00:00:00.000Z")
    await house.execution(ends, completed(document))
    report = await house.collect()
    assert (report.expired, report.trashed, report.live) == ({"ttl": 1}, 1, 1)
    await house.execution(completed(document))
    assert (await house.collect()).restored == 1  # another execution names it by the same document


async def test_a_workflow_s_results_wait_for_the_outermost_execution(house: House) -> None:
    ref = await house.put(b"of a child")
    outermost = await house.execution(end=False)
    middle = await house.execution(parent_execution_id=outermost)
    await house.execution(house.stored(ref, scope="workflow"), parent_execution_id=middle)
    nothing = timedelta(0)
    assert (await house.collect(grace=nothing, known=nothing)).expired == {}
    await house.log.store.append([make_event(outermost, "playbook.completed", status="OK")])
    assert (await house.collect(grace=nothing, known=nothing)).expired == {"scope": 1}


async def test_retention_ends_what_old_executions_named(house: House) -> None:
    ref = await house.put(b"old")
    await house.execution(completed(ref))
    nothing = timedelta(0)
    assert (await house.collect(retention=timedelta(days=1))).expired == {}
    report = await house.collect(grace=nothing, known=nothing, retention=nothing)
    assert (report.expired, report.trashed) == ({"retention": 1}, 1)


async def test_retention_waits_for_the_execution_around(house: House) -> None:
    ref, outermost = await house.put(b"of a child"), await house.execution(end=False)
    stored = house.stored(ref, scope="workflow")
    await house.execution(stored, completed(ref), parent_execution_id=outermost)
    now = {"grace": timedelta(0), "known": timedelta(0), "retention": timedelta(0)}
    assert (await house.collect(**now)).expired == {}
    await house.log.store.append([make_event(outermost, "playbook.completed", status="OK")])
    report = await house.collect(**now)
    assert (report.expired, report.trashed) == ({"retention": 2}, 1)


async def test_a_payload_named_again_comes_back_from_the_trash(house: House) -> None:
    ref = await house.put(b"back")
    await house.collect()
    assert (house.folder / trash_key(key_of(ref))).exists()
    await house.execution(completed(ref))
    house.age(trash_key(key_of(ref)), 5)
    report = await house.collect()
    assert (report.restored, report.purged, report.dangling_count) == (1, 0, 0)
    assert (house.folder / key_of(ref)).exists()
    assert not (house.folder / trash_key(key_of(ref))).exists()


async def test_an_open_execution_holds_the_trash(house: House) -> None:
    """It may have stored the payload and live to name it, however long that takes."""
    ref = await house.put(b"held")
    root = await house.execution(end=False)
    at_once = {"grace": timedelta(0), "known": timedelta(0)}
    assert (await house.collect(**at_once)).trashed == 1
    assert (await house.collect(**at_once)).in_trash == 1
    assert await house.store.exists(ref)
    await house.log.store.append([make_event(root, "playbook.completed", status="OK")])
    assert (await house.collect(**at_once)).purged == 1


async def test_missing_and_damaged_payloads_are_named_and_hold_the_rest(house: House) -> None:
    gone, damaged = await house.put(b"gone"), await house.put(b"damaged" * 1000)
    await house.put(b"orphan")
    await house.execution(completed(gone), completed(damaged, command_id="6"))
    await house.store.delete(gone)
    packed = ContentStore(house.ports.shelves, compression="zstd", known_s=0)
    await packed.put(ACME, b"damaged" * 1000, media_type=JSON)
    path = house.folder / key_of(damaged)
    path.write_bytes(path.read_bytes()[:-3])
    report = await house.collect()
    assert not report.is_whole
    assert report.dangling == (key_of(gone),)
    assert report.unreadable == (key_of(damaged),)
    assert (report.orphans, report.trashed) == (1, 0)


async def test_the_bucket_of_another_log_is_left_alone(house: House) -> None:
    (house.folder / OWNER_KEY).write_text("another")
    await house.put(b"theirs")
    with pytest.raises(BucketOfAnother, match="another"):
        await house.collect()
    with pytest.raises(BucketOfAnother):
        await house.collect(dry_run=True)


async def test_two_collectors_do_not_work_at_once(house: House, fresh_database: Settings) -> None:
    dsn = fresh_database.event_store.canonical_connection.dsn("collect")
    async with open_ledger(dsn) as other, other.lock():
        with pytest.raises(CollectorBusy):
            await house.collect()
    await house.collect()


async def test_a_grace_shorter_than_writers_trust_is_refused(house: House) -> None:
    with pytest.raises(GraceTooShort, match="600"):
        await house.collect(grace=timedelta(minutes=1))


async def test_writers_race_the_collector_and_lose_nothing(settings: Settings) -> None:
    report = await bench_collect(
        settings, seconds=5, writers=8, grace=timedelta(seconds=1), say=lambda _: None
    )
    assert report.faults == ()
    assert report.figures["live_removed"] == 0
    assert report.figures["orphans_left"] == 0
    assert report.figures["executions"]


async def test_the_command_reports(database: Settings, tmp_path: Path) -> None:
    """Through the command line, on a folder of its own."""
    store = ContentStore(LocalObjects(tmp_path / "objects"), known_s=0)
    await store.put(ACME, b"orphan", media_type=JSON)
    config = tmp_path / "streams.yaml"
    config.write_bytes(orjson.dumps(_as_config(database, tmp_path / "objects")))
    for words, code in ((["report"], 0), (["collect", "--grace", "1m"], None)):
        done = await asyncio.to_thread(
            CliRunner().invoke, cli, ["payloads", *words, "--config", str(config), "--json"]
        )
        if code is None:
            assert isinstance(done.exception, GraceTooShort)
            continue
        assert done.exit_code == code, done.output
        said = orjson.loads(done.output)
        assert (said["objects"], said["orphans"], said["young"]) == (1, 1, 1)


def _as_config(settings: Settings, folder: Path) -> dict[str, Any]:
    shown = settings.event_store.canonical_connection
    logins = {
        duty: {
            "user": shown.login(duty).user,
            "password": shown.login(duty).password.get_secret_value(),
        }
        for duty in ("append", "collect")
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
        "payload_store": {"backend": "local", "connection": {"path": str(folder)}},
    }
