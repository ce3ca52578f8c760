"""An audit finds whatever differs from the log: rows, snapshots, payloads and the log itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from streams.events.model import Event, NewEvent
from streams.projector.rows import (
    CommandRow,
    ExecutionRow,
    FrameRow,
    ResultRefRow,
    Row,
    SnapshotRow,
    StageRow,
)
from streams.replay.audit.execution import AuditReport
from streams.replay.audit.snapshots import missing_facts
from streams.replay.checks import Status
from streams.replay.errors import NoSuchExecution
from tests.support.events.examples import codec
from tests.support.projector.executions import Story
from tests.support.replay.benches import SCOPE, ReplayBench, root_of

ID = 1000
RESULT_ID = 7777


@pytest.fixture
async def bench() -> ReplayBench:
    """An execution of which everything was stored: rows, snapshots and payloads."""
    made = ReplayBench()
    story = Story(ID)
    events = await _with_result(made, story)
    await made.project(await made.append(events), snapshots=5)
    return made


async def _with_result(bench: ReplayBench, story: Story) -> list[NewEvent]:
    ref = await bench.put(b'{"rows": 10}')
    meta = {"result_id": str(RESULT_ID), "store": "s3", "scope": "permanent", "task": "tell"}
    meta["expires_at"] = "2026-05-17T12:00:00.000Z"
    stored = story.event("result.stored", node_name="tell", meta=meta, payload_ref=ref)
    *events, end = story.whole()
    return [*events, stored, end]


def first_differences(report: AuditReport) -> dict[str, str | None]:
    return {one.name: one.first for one in report.checks if one.status is Status.FAILED}


async def audited(bench: ReplayBench) -> AuditReport:
    return await bench.audit().run(ID, SCOPE)


async def test_what_was_stored_equals_the_log(bench: ReplayBench) -> None:
    report = await audited(bench)
    assert report.is_equal
    assert {one.name: one.detail for one in report.checks} == {
        "log": "20 events, each checksum and the chain from zero",
        "execution": "1 row equal",
        "stage": "1 row equal",
        "frame": "2 rows equal",
        "command": "1 row equal",
        "result_ref": "1 row equal",
        "snapshots": "4 snapshots equal the fold",
        "snapshot facts": "4 snapshots with all six",
        "payloads": "1 objects, 12 bytes and their SHA-256",
    }


@pytest.mark.parametrize("through", range(1, 20))
async def test_an_execution_that_runs_is_compared_as_far_as_it_is_projected(through: int) -> None:
    bench = ReplayBench()
    events = await bench.append(Story(ID).whole())
    await bench.project(events[:through])
    report = await audited(bench)
    assert report.is_equal, first_differences(report)
    newer = f"; {19 - through} events are not projected yet" if through < 19 else ""
    assert report.check("execution").detail == "1 row equal" + newer


@pytest.mark.parametrize(
    ("kind", "name", "change", "column"),
    [
        (ExecutionRow, "execution", {"status": "FAILED"}, "status is 'FAILED'"),
        (ExecutionRow, "execution", {"state_checksum": "00"}, "state_checksum is '00'"),
        (StageRow, "stage", {"rows_done": 9}, "rows_done is 9, from the log 10"),
        (FrameRow, "frame", {"cursor": {"from": 1}}, "cursor is {'from': 1}"),
        (FrameRow, "frame", {"last_seq": 3}, "the row is as of event 3"),
        (CommandRow, "command", {"error": "x"}, "error is 'x', from the log None"),
        (ResultRefRow, "result_ref", {"byte_length": 5}, "byte_length is 5, from the log 12"),
    ],
)
async def test_a_changed_column_is_named(
    bench: ReplayBench, kind: type[Row], name: str, change: dict[str, object], column: str
) -> None:
    row = bench.tables.of(kind)[-1]
    bench.tables.rows[kind, row.key] = replace(row, **change)  # type: ignore[arg-type]
    report = await audited(bench)
    found = first_differences(report)
    assert list(found) == [name]
    assert column in str(found[name])


async def test_a_changed_checksum_is_named(bench: ReplayBench) -> None:
    frame = bench.tables.of(FrameRow)[0]
    bench.rows.checksums[FrameRow, frame.key[0]] = "ab"
    found = first_differences(await audited(bench))
    assert list(found) == ["frame"]
    assert f"frame {frame.key[0]} as of event {frame.last_seq}: checksum is ab" in str(found)


async def test_missing_and_unknown_rows_are_named(bench: ReplayBench) -> None:
    frame, command = bench.tables.of(FrameRow)[0], bench.tables.of(CommandRow)[0]
    del bench.tables.rows[FrameRow, frame.key]
    assert isinstance(command, CommandRow)
    forged = replace(command, command_id=5)
    bench.tables.rows[CommandRow, forged.key] = forged
    found = first_differences(await audited(bench))
    assert found == {
        "frame": f"frame {frame.key[0]} as of event {frame.last_seq}: the row is missing",
        "command": "command 5: the log makes no such row",
    }


async def test_an_execution_without_a_row_is_reported(bench: ReplayBench) -> None:
    bench.tables.rows.clear()
    assert "execution" in first_differences(await audited(bench))


async def test_a_changed_snapshot_is_named(bench: ReplayBench) -> None:
    for change in ({"checksum": "00"}, {"chain": "00"}, {"state": "{}"}, {"payload_root": "x"}):
        before = dict(bench.tables.rows)
        key = (SnapshotRow, (ID, 10))
        row = bench.tables.rows[key]
        bench.tables.rows[key] = replace(row, **change)  # type: ignore[arg-type]
        found = first_differences(await audited(bench))
        assert list(found) == ["snapshots"], change
        assert str(found["snapshots"]).startswith("snapshot at event 10: ")
        bench.tables.rows = before
        bench.rows = type(bench.rows)(bench.tables)


async def test_snapshots_of_other_code_are_not_compared_and_counted(bench: ReplayBench) -> None:
    key = (SnapshotRow, (ID, 10))
    row = bench.tables.rows[key]
    changed = {"code_digest": "00", "checksum": "00"}
    bench.tables.rows[key] = replace(row, **changed)  # type: ignore[arg-type]
    detail = (await audited(bench)).check("snapshots").detail
    assert detail == "4 snapshots equal the fold, 1 made by other code not compared"


async def test_a_snapshot_without_one_of_its_facts_is_named(bench: ReplayBench) -> None:
    key = (SnapshotRow, (ID, 10))
    row = bench.tables.rows[key]
    assert isinstance(row, SnapshotRow)
    assert missing_facts(row) == []
    bench.tables.rows[key] = replace(row, encryption_context={})
    found = first_differences(await audited(bench))
    assert found["snapshot facts"] == "snapshot at event 10: tenant encryption context"


async def test_a_lost_and_a_changed_payload_are_named(bench: ReplayBench) -> None:
    ((key, _),) = bench.payloads.objects.items()
    for damage in (lambda: bench.payloads.objects.clear(), lambda: _garble(bench, key)):
        damage()
        found = first_differences(await audited(bench))
        assert list(found) == ["payloads"]
        assert "event 19 (" in str(found["payloads"])
    assert (await bench.audit(payloads=False).run(ID, SCOPE)).is_equal


def _garble(bench: ReplayBench, key: str) -> None:
    bench.payloads.objects[key] = b"garbled"


async def test_an_expired_payload_may_be_absent(bench: ReplayBench) -> None:
    story = Story(ID)
    meta = {"result_id": str(RESULT_ID), "reason": "ttl"}
    expired = replace(story.event("result.expired", meta=meta), idempotency_key="expired")
    events = await bench.append([expired])
    await bench.project(events, snapshots=5)
    bench.payloads.objects.clear()
    report = await audited(bench)
    assert report.is_equal, first_differences(report)
    assert report.check("payloads").detail.endswith("1 expired")


def _forge(bench: ReplayBench) -> None:
    stored = bench.stored.stored[root_of(ID)]
    record = {**codec().record(stored[6].envelope), "node_name": "forged"}
    stored[6] = stored[6]._replace(envelope=codec().encode(record))


def _remove(bench: ReplayBench) -> None:
    del bench.stored.stored[root_of(ID)][6]


@pytest.mark.parametrize("damage", [_forge, _remove])
async def test_a_tampered_log_is_reported_at_its_place(
    bench: ReplayBench, damage: Callable[[ReplayBench], None]
) -> None:
    damage(bench)
    report = await audited(bench)
    found = first_differences(report)
    assert list(found) == ["log"]
    assert str(found["log"]).startswith(f"execution/{ID} seq 7")
    assert {one.status for one in report.checks[1:]} == {Status.NOT_RUN}


async def test_rules_are_applied_to_every_event(bench: ReplayBench) -> None:
    def no_frames(event: Event) -> str | None:
        return "a frame" if event.type.startswith("frame.") else None

    report = await bench.audit().run(ID, SCOPE, rules={"frames": no_frames})
    tally = report.rules["frames"]
    assert (tally.checked, tally.broken) == (20, 9)
    assert str(tally.first).startswith("event 5 (frame.dispatched, ")


async def test_an_execution_of_another_scope_is_refused(bench: ReplayBench) -> None:
    with pytest.raises(NoSuchExecution):
        await bench.audit().run(7, SCOPE)
