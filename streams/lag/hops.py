"""Readings of all hops, from positions and timestamps in Kafka and in the log."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from streams.kafka.names import EVENTS_PREFIX, event_topic
from streams.lag.broker_queries import OffsetLimits
from streams.lag.core import lag_of
from streams.lag.first_records import NextRecord, Partition
from streams.lag.kafka import ClusterLag
from streams.lag.log import EventPlace, LagLog, Passing
from streams.lag.meaning import PLANNER_GROUP, PROJECTOR_GROUP, TRIGGER_GROUP, meaning_of, sink_of
from streams.lag.model import GroupLag, GroupReading
from streams.lag.pools import pool_backlogs
from streams.lag.waterfall import HopName, HopReading

NEWEST_COUNT = 40
"""Offsets read back from the end for the newest record: markers have offsets, too."""


RETENTION = timedelta(days=6)
"""Less than that of the events' topic: what expired there was mirrored."""
_Pair = tuple[Passing, Passing]


async def read_hops(cluster: ClusterLag, log: LagLog) -> tuple[datetime, tuple[HopReading, ...]]:
    """Return readings of every hop, in order, and the time at which all ages are taken.

    The readers of a topic are read before it, so that what arrives meanwhile is not missed.

    Raises:
        BrokerUnavailable, LogUnavailable: Kafka or Postgres does not respond.
    """
    readings = {one.group: one for one in await cluster.read()}
    at_ms = max((one.at_ms for one in readings.values()), default=int(time.time() * 1000))
    now = datetime.fromtimestamp(at_ms / 1000, UTC)
    lags = {
        name: lag_of(one, silence_ms=meaning_of(name).silence_ms) for name, one in readings.items()
    }
    slot, topic = await _mirror(cluster, log)
    waiting, running = await _work(cluster, log, readings)
    return now, (
        _group_hop(HopName.APPEND, lags.get(TRIGGER_GROUP), "trigger records not in the log"),
        _events_hop(HopName.SLOT, slot, now, "events not on the topic"),
        _events_hop(HopName.TOPIC, topic, now, "events in open transactions"),
        _group_hop(HopName.PLANNER, lags.get(PLANNER_GROUP), "events not planned"),
        _events_hop(HopName.WORK_TOPIC, waiting, now, "frames and commands not claimed"),
        _events_hop(HopName.WORKER, running, now, "frames and commands running"),
        _group_hop(HopName.PROJECTION, lags.get(PROJECTOR_GROUP), "events not projected"),
        *(
            _group_hop(HopName.SINK, lag, "records not in the sink", sink)
            for name, lag in sorted(lags.items())
            if (sink := sink_of(name)) is not None
        ),
    )


async def _mirror(cluster: ClusterLag, log: LagLog) -> _Pair:
    limits = await cluster.offset_limits(EVENTS_PREFIX)
    since = datetime.now(UTC) - RETENTION if _is_expired(limits) else None
    readable = await log.not_mirrored(
        await _newest(cluster, limits, is_committed=True), since=since
    )
    if all(one.stable_end >= one.end for one in limits.values()):
        return (readable, Passing(None, 0))
    written = await log.not_mirrored(
        await _newest(cluster, limits, is_committed=False), since=since
    )
    is_open = written.count < readable.count
    return (
        written,
        Passing(readable.oldest if is_open else None, readable.count - written.count),
    )


def _is_expired(limits: Mapping[Partition, OffsetLimits]) -> bool:
    """Return whether retention has deleted all events of executions."""
    events = [its for one, its in limits.items() if one[0] == event_topic("execution")]
    return any(its.end for its in events) and all(its.start >= its.end for its in events)


async def _newest(
    cluster: ClusterLag, limits: Mapping[Partition, OffsetLimits], *, is_committed: bool
) -> list[EventPlace]:
    """Return the newest mirrored event of each partition."""
    ends = {one: its.stable_end if is_committed else its.end for one, its in limits.items()}
    positions = {
        one: max(limits[one].start, end - NEWEST_COUNT)
        for one, end in ends.items()
        if end > limits[one].start
    }
    found = await cluster.peek(positions, is_committed=is_committed, most=NEWEST_COUNT)
    places = (_place_of(records[-1]) for records in found.values() if records)
    return [place for place in places if place is not None]


def _place_of(record: NextRecord) -> EventPlace | None:
    seq = dict(record.headers).get("seq")
    return None if seq is None or record.key is None else (int(record.key), int(seq))


async def _work(cluster: ClusterLag, log: LagLog, readings: Mapping[str, GroupReading]) -> _Pair:
    backlogs = await pool_backlogs(cluster, log, readings)
    waiting = [one.oldest_waiting for one in backlogs if one.oldest_waiting is not None]
    running = [one.oldest_running for one in backlogs if one.oldest_running is not None]
    waiting_count = sum(one.frames_waiting + one.commands_waiting for one in backlogs)
    return (
        Passing(min(waiting, default=None), waiting_count),
        Passing(min(running, default=None), sum(one.running for one in backlogs)),
    )


def _events_hop(hop: HopName, found: Passing, now: datetime, what: str) -> HopReading:
    seconds = 0.0 if found.oldest is None else max(0.0, (now - found.oldest).total_seconds())
    return HopReading(hop, seconds, found.count, what)


def _group_hop(hop: HopName, lag: GroupLag | None, what: str, name: str = "") -> HopReading:
    if lag is None:
        return HopReading(hop, None, None, f"{what}: no group reads them", name)
    total = lag.total
    return HopReading(hop, total.seconds_stable, total.messages_stable, what, name)
