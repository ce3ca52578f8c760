"""Analytics sinks at work during a PFT run, with Connect killed in the middle of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from streams.analytics.counts import analytics_database
from streams.analytics.lag import LagReader
from streams.analytics.lake import lake_session, metadata_location
from streams.analytics.rebuild import caught_up, rebuild_sink
from streams.analytics.setup import prepare_sinks
from streams.analytics.sinks import AnalyticsSink, sinks
from streams.analytics.verify import verify_sink
from streams.app import open_log
from streams.dev.bench.mock_server import MockWorld
from streams.dev.bench.pft import PftBench
from streams.events.model import Event, NewEvent, Root
from streams.mirror.connect import ConnectClient
from streams.settings import Settings
from tests.conftest import make_event
from tests.support.servers.runtime import Runtime

pytestmark = [pytest.mark.stack, pytest.mark.timeout(300)]
PATH = "bench/pft-10"
IS_IN_THE_MIDDLE = """
SELECT count(*) FILTER (WHERE event_type = 'frame.committed') > 0
FROM noetl.event WHERE event_time > now() - interval '1 minute' AND root_id = (
  SELECT root_id FROM noetl.event WHERE event_type = 'playbook.initialized'
    AND meta->>'path' = $1 ORDER BY root_id DESC LIMIT 1)"""
ROWS = """
SELECT count(*), md5(string_agg(event::text, '' ORDER BY event_id)) FROM event
WHERE root_id = $1"""
PAYLOADS = """
SELECT event_id, payload_ref_sha256 FROM event
WHERE root_id = $1 AND event_type = 'frame.committed'"""


@pytest.fixture
async def at_work(runtime: Runtime) -> AsyncIterator[tuple[AnalyticsSink, AnalyticsSink]]:
    """Both sinks, running; the lake commits often, since tests wait for it."""
    database, lake = sinks(runtime.settings)
    config = {**lake.connector.config, "iceberg.control.commit.interval-ms": "1000"}
    both = (database, replace(lake, connector=replace(lake.connector, config=config)))
    await prepare_sinks(runtime.settings)
    async with ConnectClient(runtime.settings.connect.url) as connect:
        for sink in both:
            await connect.apply(sink.name, sink.connector.config)
            await connect.wait_until_running(sink.name)
        yield both
        for sink in both:
            await connect.delete(sink.name)


async def test_sinks_equal_the_log_though_connect_is_killed_and_after_a_rebuild(
    runtime: Runtime, at_work: tuple[AnalyticsSink, AnalyticsSink]
) -> None:
    settings = runtime.settings
    await append_for_another_tenant(settings)
    bench = PftBench(settings, runtime.data, timeout_s=5.0, say=print)
    run = asyncio.create_task(
        bench.run(MockWorld(facilities=1, patients=40, rows_per_page=1), frame_size=10)
    )
    await runtime.until(IS_IN_THE_MIDDLE, PATH)
    await runtime.kill("connect")
    ended = (await run).ended

    lags = LagReader(settings.event_store.connection.url)
    for sink in at_work:
        verified = await verify_sink(settings, sink, within_s=90)
        assert {tenant for tenant, _ in verified.counts} >= {"acme", "default"}
        assert (await caught_up(lags, sink, print)).dead_letters == 0
    committed = await runtime.events(ended.execution_id, "frame.committed")
    assert any(digests(committed).values())
    assert await payloads_in_database(settings, ended.execution_id) == digests(committed)
    assert await payloads_in_lake(settings, ended.execution_id) == digests(committed)

    before = await rows_of_database(settings, ended.execution_id)
    for sink in at_work:
        await rebuild_sink(settings, sink, print)
    assert await rows_of_database(settings, ended.execution_id) == before
    assert await payloads_in_lake(settings, ended.execution_id) == digests(committed)


async def append_for_another_tenant(settings: Settings) -> None:
    async with open_log(settings, role="test", lanes=1) as log:
        await log.store.append([tenant_created(log.ids.next())])


def tenant_created(root_id: int) -> NewEvent:
    made = make_event(
        root_id, "tenant.created", tenant_id="acme", meta={"tenant": "acme", "isolation": "shared"}
    )
    return replace(made, root=Root("tenant", root_id))


def digests(events: list[Event]) -> dict[int, str | None]:
    return {
        event.event_id: None if event.payload_ref is None else event.payload_ref.sha256
        for event in events
    }


async def payloads_in_database(settings: Settings, execution_id: int) -> dict[int, str | None]:
    async with analytics_database(settings) as database:
        return dict(await database.fetch(PAYLOADS, execution_id))


async def payloads_in_lake(settings: Settings, execution_id: int) -> dict[int, str | None]:
    location = await metadata_location(settings)
    assert location is not None
    query = PAYLOADS.replace("FROM event", f"FROM iceberg_scan('{location}')")
    session = lake_session(settings)
    try:
        return dict(session.execute(query, [execution_id]).fetchall())
    finally:
        session.close()


async def rows_of_database(settings: Settings, execution_id: int) -> tuple[int, str]:
    async with analytics_database(settings) as database:
        count, digest = await database.fetchrow(ROWS, execution_id)
    return count, digest
