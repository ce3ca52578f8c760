"""How far projectors are behind the real topics; the checkpoints are of this module's own."""

from __future__ import annotations

import asyncpg
import pytest

from streams.app import Log, open_pool
from streams.kafka.names import event_topic
from streams.kafka.topic_ids import BrokerTopicIds
from streams.mirror.watermark import Watermark
from streams.projector.loop import PROJECTION
from streams.projector.port import Checkpoint
from streams.projector.postgres import PostgresProjections
from streams.projector.rows import Changes
from streams.projector.shard_lag import NOBODY, ShardLag
from streams.projector.shard_lag_reading import shard_lags
from streams.settings import Settings
from tests.conftest import NewEventFactory
from tests.support.log.databases import dsn

pytestmark = pytest.mark.stack
TOPIC = event_topic("execution")


async def test_a_shard_is_behind_until_its_checkpoints_reach_the_ends(
    settings: Settings, database: Settings, log: Log, new_event: NewEventFactory
) -> None:
    bootstrap = settings.event_store.connection.url
    await log.store.append([new_event(log.ids.next())])
    async with Watermark(dsn(settings, "append"), bootstrap) as mark:
        await mark.catch_up()
    async with (
        open_pool(dsn(database, "read")) as reading,
        open_pool(dsn(database, "project")) as projecting,
    ):
        nobody = (await _by_name(reading, bootstrap))[NOBODY]
        behind = [one for one in nobody.partitions if one.topic == TOPIC and one.messages]
        assert behind
        assert nobody.messages >= sum(one.messages for one in behind) > 0
        ids = await BrokerTopicIds(bootstrap).topic_ids([TOPIC])
        checkpoints = [
            Checkpoint(
                projection=PROJECTION,
                shard_id="lag-0",
                topic=TOPIC,
                topic_id=str(ids[TOPIC]),
                partition=one.partition,
                next_offset=one.next_offset + one.messages + 1_000_000,
                last_position=7,
            )
            for one in behind
        ]
        await PostgresProjections(projecting).save(Changes(), checkpoints)
        found = (await _by_name(reading, bootstrap))["lag-0"]
        assert (found.messages, found.seconds) == (0, 0.0)
        assert {one.partition for one in found.partitions} == {one.partition for one in behind}


async def _by_name(pool: asyncpg.Pool, bootstrap: str) -> dict[str, ShardLag]:
    return {one.shard_id: one for one in await shard_lags(pool, bootstrap)}
