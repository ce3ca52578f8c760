"""When a failed mirror is restarted, and when it is left alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streams.clock import SettableClock
from streams.mirror.connector_status import ConnectorStatus, ConnectorTask
from streams.mirror.readings import AlarmName, DatabaseReadings, Readings, Slot
from streams.mirror.task_restart import HEALTHY_S, RestartSchedule, is_restartable

SLOT = Slot(
    is_active=False,
    inactive_s=40.0,
    confirmed_lsn=1000,
    wal_status="reserved",
    safe_wal_bytes=None,
)
DATABASE = DatabaseReadings(
    current_lsn=1200, slot=SLOT, wal_keep_bytes=None, has_next_partition=True
)
FAILED = ConnectorStatus("noetl-mirror", "RUNNING", (ConnectorTask(0, "FAILED", "x: y"),))
READINGS = Readings(database=DATABASE, connector=FAILED, stored_lsn=1000)


def test_a_failed_task_with_an_intact_slot_is_restarted() -> None:
    assert is_restartable(READINGS)


@pytest.mark.parametrize(
    "slot",
    [
        None,
        replace(SLOT, confirmed_lsn=1100),
        replace(SLOT, wal_status="lost"),
        replace(SLOT, invalidation="wal_removed"),
    ],
    ids=["missing", "recreated", "lost", "invalidated"],
)
def test_a_damaged_slot_waits_for_a_rebuild(slot: Slot | None) -> None:
    assert not is_restartable(replace(READINGS, database=replace(DATABASE, slot=slot)))


def test_a_mirror_that_is_being_rebuilt_is_left_alone() -> None:
    rebuilding = replace(DATABASE, is_rebuilding=True)
    assert not is_restartable(replace(READINGS, database=rebuilding))


def test_postgres_must_answer_first() -> None:
    unreachable = {AlarmName.POSTGRES_UNREACHABLE: "no answer"}
    assert not is_restartable(replace(READINGS, database=None, unreachable=unreachable))


def test_restarts_of_one_failure_become_rarer_up_to_a_minute() -> None:
    clock = SettableClock()
    schedule = RestartSchedule(clock)
    pauses = []
    for _ in range(8):
        waited = 0
        while not schedule.is_due():
            clock.advance(1)
            waited += 1
        schedule.restarted()
        pauses.append(waited)
    assert pauses == [0, 2, 4, 8, 16, 32, 60, 60]


def test_a_failure_long_after_the_last_is_a_first_one_again() -> None:
    clock = SettableClock()
    schedule = RestartSchedule(clock)
    for _ in range(4):
        schedule.restarted()
    clock.advance(HEALTHY_S + 16)
    assert schedule.is_due()
    schedule.restarted()
    clock.advance(2)
    assert not schedule.is_due()
    clock.advance(2)
    assert schedule.is_due()
