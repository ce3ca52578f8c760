"""What the guard makes of its readings."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from streams.mirror.alarms import AlarmsRaised, Limits, judge
from streams.mirror.connector_status import ConnectorStatus, ConnectorTask
from streams.mirror.readings import AlarmName, DatabaseReadings, Readings, Slot
from streams.mirror.stored_offset import stored_lsn

GIB = 2**30
SLOT = Slot(
    is_active=True,
    inactive_s=0.0,
    confirmed_lsn=1000,
    wal_status="reserved",
    safe_wal_bytes=4 * GIB,
)
DATABASE = DatabaseReadings(
    current_lsn=1200, slot=SLOT, wal_keep_bytes=4 * GIB, has_next_partition=True
)
RUNNING = ConnectorStatus("noetl-mirror", "RUNNING", (ConnectorTask(0, "RUNNING"),))
WELL = Readings(database=DATABASE, connector=RUNNING, stored_lsn=1000, round_trip_s=0.02)


def names(readings: Readings) -> list[str]:
    return [str(alarm.name) for alarm in judge(readings, Limits())]


def with_slot(slot: Slot | None, **more: object) -> Readings:
    return replace(WELL, database=replace(DATABASE, slot=slot), **more)


def test_a_mirror_that_is_well_raises_nothing() -> None:
    assert names(WELL) == []


def test_a_stored_offset_ahead_of_the_slot_is_how_a_mirror_at_work_looks() -> None:
    assert names(replace(WELL, stored_lsn=5000)) == []


def test_a_mirror_that_has_never_run_raises_nothing_about_its_slot() -> None:
    assert names(with_slot(None, stored_lsn=None)) == []


def test_the_first_snapshot_raises_nothing() -> None:
    """The slot is there before the first offset is stored, and no topic is written yet."""
    assert names(with_slot(SLOT, stored_lsn=None, topics_written=False)) == []


def test_a_slot_that_is_gone_while_an_offset_is_stored_has_vanished() -> None:
    assert names(with_slot(None)) == ["slot_missing"]


def test_a_slot_that_is_gone_while_topics_are_filled_has_vanished() -> None:
    assert names(with_slot(None, stored_lsn=None, topics_written=True)) == ["slot_missing"]


def test_a_slot_beyond_the_stored_offset_is_another_one() -> None:
    (alarm,) = judge(with_slot(replace(SLOT, confirmed_lsn=1001)), Limits())
    assert alarm.name is AlarmName.SLOT_RECREATED
    assert "0/3E9" in alarm.what
    assert "rebuild" in alarm.remedy


def test_a_slot_is_not_compared_with_an_offset_that_cannot_be_read_any_more() -> None:
    readings = with_slot(replace(SLOT, confirmed_lsn=1001))
    silent = {AlarmName.KAFKA_UNREACHABLE: "no answer"}
    assert names(replace(readings, unreachable=silent)) == ["kafka_unreachable"]


def test_filled_topics_without_a_stored_offset_would_be_filled_twice() -> None:
    readings = replace(WELL, stored_lsn=None, topics_written=True)
    assert names(readings) == ["offsets_missing"]


def test_nothing_is_said_about_offsets_that_could_not_be_read() -> None:
    silent = {AlarmName.KAFKA_UNREACHABLE: "no answer"}
    readings = replace(WELL, stored_lsn=None, topics_written=True, unreachable=silent)
    assert names(readings) == ["kafka_unreachable"]


@pytest.mark.parametrize(
    "slot",
    [
        replace(SLOT, wal_status="lost", safe_wal_bytes=None),
        replace(SLOT, invalidation="idle_timeout"),
    ],
)
def test_an_invalidated_slot_has_lost_its_wal(slot: Slot) -> None:
    assert names(with_slot(slot)) == ["wal_lost"]


def test_wal_that_may_go_at_the_next_checkpoint_is_an_alarm() -> None:
    slot = replace(SLOT, wal_status="unreserved", safe_wal_bytes=-5)
    assert names(with_slot(slot)) == ["wal_unreserved"]


def test_little_safe_wal_is_an_alarm_before_it_runs_out() -> None:
    assert names(with_slot(replace(SLOT, safe_wal_bytes=GIB))) == []
    assert names(with_slot(replace(SLOT, safe_wal_bytes=GIB - 1))) == ["safe_wal_low"]


def test_without_a_bound_on_kept_wal_none_can_run_low() -> None:
    slot = replace(SLOT, safe_wal_bytes=None)
    unbounded = replace(DATABASE, slot=slot, wal_keep_bytes=None)
    assert names(replace(WELL, database=unbounded)) == []


def test_a_slot_without_a_reader_is_given_the_time_of_a_restart() -> None:
    assert names(with_slot(replace(SLOT, is_active=False, inactive_s=30.0))) == []
    assert names(with_slot(replace(SLOT, is_active=False, inactive_s=30.1))) == ["slot_inactive"]


@pytest.mark.parametrize(
    ("status", "name"),
    [
        (None, "connector_missing"),
        (ConnectorStatus("noetl-mirror", "FAILED", (), "java.lang.X: why"), "connector_failed"),
        (
            ConnectorStatus("noetl-mirror", "RUNNING", (ConnectorTask(0, "FAILED", "X: why"),)),
            "task_failed",
        ),
        (ConnectorStatus("noetl-mirror", "STOPPED", ()), "connector_stopped"),
        (
            ConnectorStatus("noetl-mirror", "PAUSED", (ConnectorTask(0, "PAUSED"),)),
            "connector_stopped",
        ),
    ],
)
def test_each_way_a_connector_can_fail_has_its_name(
    status: ConnectorStatus | None, name: str
) -> None:
    assert names(replace(WELL, connector=status)) == [name]


def test_a_task_that_awaits_its_worker_has_not_failed() -> None:
    waiting = ConnectorStatus("noetl-mirror", "UNASSIGNED", (ConnectorTask(0, "UNASSIGNED"),))
    assert names(replace(WELL, connector=waiting)) == []


def test_a_silent_connect_says_nothing_about_the_connector() -> None:
    silent = {AlarmName.CONNECT_UNREACHABLE: "no answer"}
    readings = replace(WELL, connector=None, unreachable=silent)
    assert names(readings) == ["connect_unreachable"]


def test_a_slow_round_trip_or_much_unread_wal_is_being_behind() -> None:
    assert names(replace(WELL, round_trip_s=5.1)) == ["mirror_behind"]
    assert names(replace(WELL, round_trip_s=math.inf)) == ["mirror_behind"]
    far = replace(DATABASE, current_lsn=1000 + 256 * 2**20 + 1)
    assert names(replace(WELL, database=far)) == ["mirror_behind"]


def test_a_missing_partition_for_next_month_is_an_alarm() -> None:
    unprepared = replace(DATABASE, has_next_partition=False)
    assert names(replace(WELL, database=unprepared)) == ["partitions_missing_ahead"]


def test_a_rebuild_at_work_is_not_taken_for_damage() -> None:
    stopped = ConnectorStatus("noetl-mirror", "STOPPED", ())
    at_work = replace(DATABASE, slot=None, is_rebuilding=True)
    assert names(replace(WELL, database=at_work, connector=stopped)) == []


def test_a_failure_during_a_rebuild_is_still_told() -> None:
    failed = ConnectorStatus("noetl-mirror", "RUNNING", (ConnectorTask(0, "FAILED", "X: why"),))
    at_work = replace(DATABASE, is_rebuilding=True)
    assert names(replace(WELL, database=at_work, connector=failed)) == ["task_failed"]


def test_alarms_end_a_check_with_an_exit_code_of_their_own() -> None:
    error = AlarmsRaised(judge(with_slot(None), Limits()))
    assert error.exit_code == 7
    assert "slot_missing" in str(error)


@pytest.mark.parametrize(
    ("value", "lsn"),
    [
        (b'{"lsn": 7, "lsn_proc": 9, "lsn_commit": 8, "ts_usec": 99}', 9),
        (b'{"lsn": 7, "lsn_proc": null}', 7),
        (b'{"transaction_id": null}', None),
        (None, None),
    ],
)
def test_a_stored_offset_is_as_far_as_its_furthest_lsn(
    value: bytes | None, lsn: int | None
) -> None:
    assert stored_lsn(value) == lsn


def test_a_transaction_that_hangs_is_an_alarm_with_its_place() -> None:
    (alarm,) = judge(replace(WELL, hanging=("one hangs on topic-0 at offset 7",)), Limits())
    assert alarm.name is AlarmName.TRANSACTION_HANGING
    assert "topic-0 at offset 7" in alarm.what
    assert "streams mirror mend" in alarm.remedy
