"""Readings of the mirror's state in Postgres, Kafka and Connect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from streams.mirror.connector_status import ConnectorStatus


class AlarmName(StrEnum):
    """All alarms; the names are stable for use by other programs."""

    POSTGRES_UNREACHABLE = "postgres_unreachable"
    KAFKA_UNREACHABLE = "kafka_unreachable"
    CONNECT_UNREACHABLE = "connect_unreachable"
    SLOT_MISSING = "slot_missing"
    SLOT_RECREATED = "slot_recreated"
    SLOT_INACTIVE = "slot_inactive"
    OFFSETS_MISSING = "offsets_missing"
    WAL_LOST = "wal_lost"
    WAL_UNRESERVED = "wal_unreserved"
    SAFE_WAL_LOW = "safe_wal_low"
    CONNECTOR_MISSING = "connector_missing"
    CONNECTOR_FAILED = "connector_failed"
    CONNECTOR_STOPPED = "connector_stopped"
    TASK_FAILED = "task_failed"
    MIRROR_BEHIND = "mirror_behind"
    TRANSACTION_HANGING = "transaction_hanging"
    PARTITIONS_MISSING_AHEAD = "partitions_missing_ahead"


@dataclass(frozen=True, slots=True)
class Slot:
    """The replication slot, as Postgres reports it."""

    is_active: bool
    inactive_s: float
    confirmed_lsn: int | None
    wal_status: str | None
    safe_wal_bytes: int | None
    invalidation: str | None = None


@dataclass(frozen=True, slots=True)
class DatabaseReadings:
    """Postgres's readings of the mirror."""

    current_lsn: int
    slot: Slot | None
    wal_keep_bytes: int | None
    """`max_slot_wal_keep_size`; None if unlimited."""
    has_next_partition: bool
    is_rebuilding: bool = False


@dataclass(frozen=True, slots=True)
class Readings:
    """Readings of one check; None for what could not be read.

    `stored_lsn` must be read after `database`: it is then never behind the slot's confirmed
    LSN, unless the slot was recreated.
    """

    database: DatabaseReadings | None = None
    connector: ConnectorStatus | None = None
    stored_lsn: int | None = None
    topics_written: bool = False
    round_trip_s: float | None = None
    """None if not measured because the mirror does not run; infinite after the timeout."""
    unreachable: Mapping[AlarmName, str] = field(default_factory=dict)
    hanging: Sequence[str] = ()
    """Hanging Kafka transactions, checked if the mirror makes no progress."""

    @property
    def lag_bytes(self) -> int | None:
        """WAL bytes that the mirror has not confirmed."""
        if self.database is None or self.database.slot is None:
            return None
        confirmed = self.database.slot.confirmed_lsn
        return None if confirmed is None else max(0, self.database.current_lsn - confirmed)
