"""Alarms of the mirror: pure rules from readings to named alarms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streams.errors import StreamsError
from streams.mirror.readings import AlarmName, Readings, Slot
from streams.mirror.watermark import lsn_text

REBUILD = "run `streams mirror rebuild`"
MEND = "run `streams mirror mend`; `streams up` does it by itself"


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something that is wrong, and what to do about it."""

    name: AlarmName
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.name}: {self.what}; {self.remedy}"


class AlarmsRaised(StreamsError):
    """A check found something wrong; scripts recognize it by its exit code."""

    exit_code = 7

    def __init__(self, alarms: Sequence[Alarm]) -> None:
        super().__init__(f"alarms: {', '.join(alarm.name for alarm in alarms)}")
        self.alarms = tuple(alarms)


@dataclass(frozen=True, slots=True)
class Limits:
    """From where on a reading is an alarm."""

    inactive_s: float = 30.0
    """A restart of Connect leaves the slot without a reader for less than this."""
    safe_wal_share: float = 0.25
    """Share of `max_slot_wal_keep_size` that must still be free."""
    lag_bytes: int = 256 * 2**20
    lag_s: float = 5.0


# While a rebuild runs it causes these, and it reports its own progress.
_PART_OF_A_REBUILD = {
    AlarmName.SLOT_MISSING,
    AlarmName.SLOT_RECREATED,
    AlarmName.SLOT_INACTIVE,
    AlarmName.OFFSETS_MISSING,
    AlarmName.CONNECTOR_MISSING,
    AlarmName.CONNECTOR_STOPPED,
    AlarmName.MIRROR_BEHIND,
}


def judge(readings: Readings, limits: Limits) -> tuple[Alarm, ...]:
    """Name everything that is wrong; nothing when all is well."""
    found = [
        *(
            Alarm(name, why, "see that it is up (`streams status`)")
            for name, why in readings.unreachable.items()
        ),
        *_slot_alarms(readings, limits),
        *_connector_alarms(readings),
        *_lag_alarms(readings, limits),
        *(
            Alarm(AlarmName.TRANSACTION_HANGING, f"{one}: readers wait before it", MEND)
            for one in readings.hanging
        ),
    ]
    database = readings.database
    if database is not None and database.is_rebuilding:
        found = [alarm for alarm in found if alarm.name not in _PART_OF_A_REBUILD]
    if database is not None and not database.has_next_partition:
        found.append(
            Alarm(
                AlarmName.PARTITIONS_MISSING_AHEAD,
                "noetl.event has no partition for the next month, when appends would fail",
                "run `streams migrate`, which makes partitions ahead of need",
            )
        )
    return tuple(found)


def _slot_alarms(readings: Readings, limits: Limits) -> Iterator[Alarm]:
    if readings.database is None:
        return
    slot, stored = readings.database.slot, readings.stored_lsn
    kafka_known = AlarmName.KAFKA_UNREACHABLE not in readings.unreachable
    if slot is None:
        if stored is not None or readings.topics_written:
            yield Alarm(
                AlarmName.SLOT_MISSING,
                "the replication slot has vanished: what was appended since may never be mirrored",
                REBUILD,
            )
        return
    if stored is None and readings.topics_written and kafka_known:
        yield Alarm(
            AlarmName.OFFSETS_MISSING,
            "the event topics are filled but Connect has no offset for the mirror: "
            "at its next start it would mirror everything a second time",
            REBUILD,
        )
    confirmed = slot.confirmed_lsn
    # An offset that cannot be read now is an old one, which the slot has rightly passed.
    if kafka_known and stored is not None and confirmed is not None and confirmed > stored:
        yield Alarm(
            AlarmName.SLOT_RECREATED,
            f"the replication slot begins at {lsn_text(confirmed)} but the mirror has come to "
            f"{lsn_text(stored)} only: what was appended between them is lost to it",
            REBUILD,
        )
    yield from _wal_alarms(slot, readings.database.wal_keep_bytes, limits)
    if not slot.is_active and slot.inactive_s > limits.inactive_s:
        yield Alarm(
            AlarmName.SLOT_INACTIVE,
            f"nobody has read the replication slot for {slot.inactive_s:.0f} s",
            "see `streams connectors status`, then `streams connectors restart noetl-mirror`",
        )


def _wal_alarms(slot: Slot, keep_bytes: int | None, limits: Limits) -> Iterator[Alarm]:
    if slot.wal_status == "lost" or slot.invalidation:
        reason = slot.invalidation or "wal_removed"
        yield Alarm(
            AlarmName.WAL_LOST,
            f"Postgres has given up the replication slot ({reason}): the WAL it needs is gone",
            REBUILD,
        )
        return
    hurry = "get the connector going (`streams connectors status`) or raise max_slot_wal_keep_size"
    if slot.wal_status == "unreserved":
        yield Alarm(
            AlarmName.WAL_UNRESERVED,
            "the WAL that the slot needs may go at the next checkpoint",
            f"at once {hurry}",
        )
    elif slot.safe_wal_bytes is not None and keep_bytes:
        least = int(keep_bytes * limits.safe_wal_share)
        if slot.safe_wal_bytes < least:
            yield Alarm(
                AlarmName.SAFE_WAL_LOW,
                f"after {slot.safe_wal_bytes / 2**20:.0f} MiB more of WAL the slot may be lost",
                hurry,
            )


def _connector_alarms(readings: Readings) -> Iterator[Alarm]:
    if AlarmName.CONNECT_UNREACHABLE in readings.unreachable:
        return
    status = readings.connector
    if status is None:
        yield Alarm(
            AlarmName.CONNECTOR_MISSING,
            "Connect does not know the mirror's connector",
            "run `streams connectors apply`",
        )
    elif status.at_rest:
        yield Alarm(
            AlarmName.CONNECTOR_STOPPED,
            f"the mirror's connector is {status.state.lower()}",
            "run `streams connectors restart noetl-mirror`, "
            "or `streams mirror rebuild` if a rebuild was broken off",
        )
    elif status.failure is not None:
        connector = status.state == "FAILED"
        yield Alarm(
            AlarmName.CONNECTOR_FAILED if connector else AlarmName.TASK_FAILED,
            _shorter(status.failure),
            "correct the cause, then run `streams connectors restart noetl-mirror`",
        )


def _lag_alarms(readings: Readings, limits: Limits) -> Iterator[Alarm]:
    late = readings.round_trip_s is not None and readings.round_trip_s > limits.lag_s
    lag_bytes = readings.lag_bytes or 0
    if late or lag_bytes > limits.lag_bytes:
        time = f"more than {limits.lag_s:.0f} s and " if late else ""
        yield Alarm(
            AlarmName.MIRROR_BEHIND,
            f"what is appended comes to Kafka {time}{lag_bytes / 2**20:.1f} MiB of WAL late",
            "it may only be catching up: look again; else see Connect's log",
        )


def _shorter(text: str, most: int = 300) -> str:
    return text if len(text) <= most else f"{text[:most]} …"
