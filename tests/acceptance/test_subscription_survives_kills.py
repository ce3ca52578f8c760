"""Records of a foreign topic, while the trigger role and Kafka are killed: one execution each."""

from __future__ import annotations

from pathlib import Path

import pytest

from streams.cli.output import settings_of
from streams.dev.bench.subscription import bench_subscription
from streams.local.stack import running

pytestmark = pytest.mark.stack
RECORDS = 2000


async def test_each_record_of_a_foreign_topic_starts_one_execution(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """On a stack of its own: nobody else's parts are killed."""
    data: Path = tmp_path_factory.mktemp("subscribed")
    async with running(data, roles={"trigger": 1}):
        report = await bench_subscription(
            settings_of(None, data), data, records=RECORDS, kills=1, say=lambda _: None
        )
    assert report.faults == ()
    assert report.figures["started"] == RECORDS
    assert report.figures["kills"] == {"trigger-0": 1, "kafka": 1}
