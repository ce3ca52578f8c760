"""The lag of a projector: the age of what it has in hand, 0 when nothing is left."""

from __future__ import annotations

from streams.clock import SettableClock
from streams.kafka.feed.port import Record, TopicPartition
from streams.projector.lag import Batch, ProjectionLag


def record(partition: int, clock: SettableClock, age_s: float) -> Record:
    at_ms = round((clock.now().timestamp() - age_s) * 1000)
    return Record(TopicPartition("t", partition), 0, None, None, (), at_ms)


async def test_the_age_of_the_oldest_record_in_hand_grows_until_it_is_projected() -> None:
    clock, behind = SettableClock(), 3
    lag = ProjectionLag("p-0", clock, lambda: behind)
    seen = []

    async def handle(batch: Batch) -> None:
        seen.append(lag.seconds)
        clock.advance(5)
        seen.append(lag.seconds)

    assert lag.seconds == 0
    batch = {
        TopicPartition("t", 0): [record(0, clock, 2), record(0, clock, 1)],
        TopicPartition("t", 1): [record(1, clock, 40)],
    }
    await lag.watched(handle)(batch)

    assert seen == [40, 45]
    assert lag.seconds == 45
    behind = 0
    assert [(one.metric.name, one.labels, one.value) for one in lag.samples()] == [
        ("noetl_projection_lag_records", ("p-0",), 0),
        ("noetl_projection_lag_seconds", ("p-0",), 0),
    ]


async def test_a_batch_that_fails_stays_in_hand() -> None:
    clock = SettableClock()
    lag = ProjectionLag("p-0", clock, lambda: 0)

    async def fail(_: Batch) -> None:
        raise OSError

    try:
        await lag.watched(fail)({TopicPartition("t", 0): [record(0, clock, 10)]})
    except OSError:
        clock.advance(10)

    assert lag.seconds == 20
