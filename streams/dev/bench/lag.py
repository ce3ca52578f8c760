"""Benchmark of the lag figures: messages, seconds, and the sum of the waterfall.

Messages are compared with those of the broker by another driver, in the middle of a load that
is paused. Seconds are compared with the ages of records that were written hours apart, and with
a delay by the clock. The waterfall is compared with the age of a probe: an execution that waits
first for the mirror, which is stopped, and then for a worker of a pool that has none.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from streams.dev.bench.executions import Executions, open_executions
from streams.dev.bench.lag_topic import LagTopic, broker_lags, lag_topic
from streams.dev.bench.playbook_setup import register
from streams.dev.bench.report import BenchReport, Figure
from streams.dev.bench.waiting_executions import PATH, PLAYBOOK, WaitingExecutions
from streams.lag.core import lag_of
from streams.lag.kafka import ClusterLag
from streams.lag.report import read_waterfall
from streams.lag.waterfall import HopName
from streams.mirror.connect import ConnectClient
from streams.mirror.setup import MIRROR
from streams.settings import Settings

PARTITIONS, HOUR_S = 4, 3600.0
# By partition: ages of a consumed record, of the first unconsumed one and of the last.
AGES_S = {
    0: (9 * HOUR_S, 5 * HOUR_S, 2 * HOUR_S),
    1: (30 * HOUR_S, 1 * HOUR_S, 30.0),
    2: (HOUR_S, 60.0, 0.0),
    3: (HOUR_S, 5.0, 0.0),
}
DELAY_S = 3.0
MESSAGE_LIMIT, RATIO_LIMIT = 0, 0.1

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class _Probed:
    """The waterfall while a probe waited at a hop."""

    hop: HopName
    age_s: float
    sum_s: float
    largest: HopName

    @property
    def error_ratio(self) -> float:
        return abs(self.sum_s - self.age_s) / self.age_s


async def bench_lag(settings: Settings, *, records: int, say: Say) -> BenchReport:
    """Measure with a load of this many records."""
    bootstrap = settings.event_store.connection.url
    async with ClusterLag(bootstrap) as cluster:
        say(f"messages: {records} records, half of them consumed")
        message_error, compared = await _message_error(cluster, bootstrap, records)
        say("seconds: records hours apart, and a delay by the clock")
        seconds_error = await _seconds_error(cluster, bootstrap)
        say("waterfall: a probe at the mirror, then at the work topic")
        probes = await _probe(cluster, settings)
    worst = max(one.error_ratio for one in probes)
    figures: dict[str, Figure] = {
        "message_error": message_error,
        "compared_partitions": compared,
        "seconds_error_ratio": round(seconds_error, 5),
        "waterfall_error_ratio": round(worst, 5),
        "probe_s": {str(one.hop): round(one.age_s, 3) for one in probes},
        "waterfall_s": {str(one.hop): round(one.sum_s, 3) for one in probes},
    }
    return BenchReport(figures, tuple(_faults(message_error, seconds_error, probes)))


async def _message_error(cluster: ClusterLag, bootstrap: str, records: int) -> tuple[int, int]:
    """Return by how much messages differ from the broker's, and how many partitions have any."""
    each = records // PARTITIONS
    async with lag_topic(bootstrap, PARTITIONS) as topic:
        ages = dict.fromkeys(range(PARTITIONS), [0.0] * each)
        await asyncio.to_thread(topic.write, ages)
        consumer = await asyncio.to_thread(topic.consume, records // 2)
        readings = await cluster.read()
        expected = await broker_lags(bootstrap, [one.group for one in readings])
        await asyncio.to_thread(consumer.close)
    found = {
        (reading.group, (one.topic, one.partition)): one.messages
        for reading in readings
        for one in lag_of(reading).partitions
        if one.messages is not None
    }
    keys = found.keys() | expected.keys()
    error = sum(abs((found.get(key) or 0) - expected.get(key, 0)) for key in keys)
    return error, len(keys)


async def _seconds_error(cluster: ClusterLag, bootstrap: str) -> float:
    """Return the largest relative error of the seconds of any partition."""
    async with lag_topic(bootstrap, PARTITIONS) as topic:
        written = await asyncio.to_thread(topic.write, AGES_S)
        await asyncio.to_thread(topic.commit, dict.fromkeys(range(PARTITIONS), 1))
        found, since = await _seconds(cluster, topic), time.time() - written
        errors = [
            abs(seconds - (AGES_S[number][1] + since)) / (AGES_S[number][1] + since)
            for number, seconds in found.items()
        ]
        ends = {number: len(ages) for number, ages in AGES_S.items()}
        await asyncio.to_thread(topic.commit, ends)
        caught_up = await _seconds(cluster, topic)
        began = time.monotonic()
        await asyncio.to_thread(topic.write, {0: [0.0]})
        await asyncio.sleep(DELAY_S)
        delayed = (await _seconds(cluster, topic))[0]
        delay = time.monotonic() - began
    errors.append(abs(delayed - delay) / delay)
    return max(*errors, *caught_up.values())  # without lag, any second is an error


async def _seconds(cluster: ClusterLag, topic: LagTopic) -> dict[int, float]:
    [reading] = await cluster.read([topic.name])
    return {one.partition: one.seconds or 0.0 for one in lag_of(reading).partitions}


async def _probe(cluster: ClusterLag, settings: Settings) -> list[_Probed]:
    """Start an execution while the mirror is stopped; measure there, and once it runs again."""
    await register(settings, PLAYBOOK)
    async with (
        open_executions(settings) as started,
        ConnectClient(settings.connect.url) as connect,
    ):
        await connect.stop(MIRROR)
        try:
            await connect.wait_until_stopped(MIRROR)
            began = time.time()
            execution_id = await started.find(await started.publish(PATH))
            at_slot = await _probed(cluster, settings, HopName.SLOT, began)
        finally:
            await connect.resume(MIRROR)
        await connect.wait_until_running(MIRROR)
        try:
            at_work = await _probed(cluster, settings, HopName.WORK_TOPIC, began)
        finally:
            await _cancel(settings, started, execution_id)
    return [at_slot, at_work]


async def _probed(cluster: ClusterLag, settings: Settings, hop: HopName, began: float) -> _Probed:
    """Read the waterfall once the probe waits at a hop, for a while."""
    until = time.monotonic() + 60.0
    while True:
        await asyncio.sleep(DELAY_S)
        found = await read_waterfall(cluster, settings)
        largest = max(found.hops, key=lambda one: one.adds_s).reading.hop
        if largest is hop or time.monotonic() > until:
            return _Probed(hop, found.at.timestamp() - began, found.total_s, largest)


async def _cancel(settings: Settings, started: Executions, execution_id: int) -> None:
    waiting = WaitingExecutions(settings, started)
    waiting.ids = frozenset((execution_id,))
    await waiting.cancel()


def _faults(message_error: int, seconds_error: float, probes: list[_Probed]) -> list[str]:
    faults = []
    if message_error > MESSAGE_LIMIT:
        faults.append(f"messages differ from the broker's by {message_error}")
    if seconds_error > RATIO_LIMIT:
        faults.append(f"seconds differ from the records' age by {seconds_error:.1%}")
    for one in probes:
        if one.error_ratio > RATIO_LIMIT:
            faults.append(f"the sum at {one.hop} is {one.sum_s:.1f} s, the probe {one.age_s:.1f} s")
        if one.largest is not one.hop:
            faults.append(f"the probe was expected at {one.hop}, the waterfall has {one.largest}")
    return faults
