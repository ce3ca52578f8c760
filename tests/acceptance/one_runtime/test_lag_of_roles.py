"""The lag of the roles equals the broker's, and the waterfall finds work that waits."""

from __future__ import annotations

from uuid import uuid4

import pytest

from streams.dev.bench.lag_topic import broker_lags
from streams.lag.backlog import WorkBacklog
from streams.lag.core import lag_of
from streams.lag.kafka import ClusterLag
from streams.lag.log import lag_log
from streams.lag.pools import pool_backlogs
from streams.lag.report import read_waterfall
from streams.lag.waterfall import HopName
from tests.support.servers.runtime import Runtime, playbook
from tests.support.waiting import until

pytestmark = [pytest.mark.stack, pytest.mark.timeout(300)]
GROUPS = ["noetl.planner", "noetl.projector", "noetl.trigger", "noetl.worker.default"]


async def test_work_that_nobody_takes_is_in_the_waterfall_with_its_age(runtime: Runtime) -> None:
    pool = f"idle-{uuid4().hex[:8]}"
    execution_id = await runtime.start(
        playbook({"step": "wait", "pool": pool, "tool": {"kind": "noop"}})
    )
    [first, *_] = await runtime.events(execution_id, "playbook.initialized")
    began = first.ingest_time.timestamp()

    async with ClusterLag(runtime.settings.event_store.connection.url) as cluster:

        async def waits() -> bool:
            return (await backlog_of_pool(cluster, runtime, pool)).commands_waiting == 1

        await until(waits, within_s=60, every_s=0.5)
        found = await backlog_of_pool(cluster, runtime, pool)
        waterfall = await read_waterfall(cluster, runtime.settings)
        ended = await runtime.run(playbook({"step": "once", "tool": {"kind": "noop"}}))
        await until(lambda: has_caught_up(cluster), within_s=60, every_s=0.5)
        readings = await cluster.read(GROUPS)
        expected = await broker_lags(runtime.settings.event_store.connection.url, GROUPS)

    by_hop = {one.reading.hop: one.reading for one in waterfall.hops}
    assert found.oldest_waiting is not None
    assert abs(found.oldest_waiting.timestamp() - began) < 5
    assert ended.status == "COMPLETED"
    assert waterfall.is_complete
    # Other tests on this runtime leave older work.
    age_s = waterfall.at.timestamp() - began
    assert (by_hop[HopName.WORK_TOPIC].seconds or 0) >= 0.9 * age_s
    assert waterfall.total_s == pytest.approx(sum(one.adds_s for one in waterfall.hops))
    ours = {
        (one.group, (its.topic, its.partition)): its.messages
        for one in map(lag_of, readings)
        for its in one.partitions
        if its.messages is not None
    }
    assert ours == expected


async def has_caught_up(cluster: ClusterLag) -> bool:
    return all(lag_of(one).total.messages == 0 for one in await cluster.read(GROUPS))


async def backlog_of_pool(cluster: ClusterLag, runtime: Runtime, pool: str) -> WorkBacklog:
    readings = {one.group: one for one in await cluster.read()}
    async with lag_log(runtime.settings) as log:
        backlogs = {one.pool: one for one in await pool_backlogs(cluster, log, readings)}
    return backlogs.get(pool, WorkBacklog(pool=pool))
