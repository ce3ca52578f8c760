"""The waterfall adds up, and work of a pool reads as frames and rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from streams.kafka.work.item import WorkItem
from streams.lag.backlog import ItemState, backlog_of
from streams.lag.evaluation import SILENCE_MS
from streams.lag.meaning import FRAME_SILENCE_MS, meaning_of
from streams.lag.waterfall import HopName, HopReading, waterfall_of

AT = datetime(2026, 1, 1, tzinfo=UTC)


def hop(name: HopName, seconds: float | None) -> HopReading:
    return HopReading(name, seconds, None if seconds is None else 1, "records")


def item(entity_id: int, kind: str = "frame", **more: object) -> WorkItem:
    fields: dict[str, object] = {
        "kind": kind,
        "tenant_id": "t",
        "organization_id": "o",
        "execution_id": 1,
        "entity_id": entity_id,
        "attempt": 1,
        "version": 1,
        "step": "start",
        "pool": "default",
        "catalog_id": 1,
        "catalog_version": 1,
    }
    return WorkItem(**{**fields, **more})  # type: ignore[arg-type]


def test_the_sum_is_the_age_of_the_oldest_item_that_is_not_through() -> None:
    found = waterfall_of(
        AT,
        [
            hop(HopName.SLOT, 0.0),
            hop(HopName.PLANNER, 2.0),
            hop(HopName.WORK_TOPIC, 10.0),
            hop(HopName.PROJECTION, 2.0),
            hop(HopName.SINK, 30.0),
        ],
    )

    assert [one.adds_s for one in found.hops] == [0.0, 2.0, 8.0, 0.0, 20.0]
    assert found.total_s == sum(one.adds_s for one in found.hops) == 30.0
    assert found.is_complete


def test_a_hop_that_cannot_be_read_adds_nothing_and_is_reported() -> None:
    found = waterfall_of(AT, [hop(HopName.PLANNER, 3.0), hop(HopName.PROJECTION, None)])

    assert found.total_s == 3.0
    assert not found.is_complete


def test_work_is_counted_as_frames_rows_and_commands_that_wait_or_run() -> None:
    items = [
        item(1, cursor={"kind": "list", "from": 4, "to": 10}),
        item(1, cursor={"kind": "list", "from": 4, "to": 10}, attempt=2),
        item(2, cursor={"kind": "claim"}, policy={"size": 50}),
        item(3, cursor={"kind": "list", "from": 0, "to": 4}),
        item(4, kind="command"),
        item(5),
        item(6),
    ]
    states = {
        1: ItemState("frame.dispatched", AT, True),
        2: ItemState("frame.lease_expired", AT - timedelta(hours=1), True),
        3: ItemState("frame.claimed", AT - timedelta(hours=2), True),
        4: ItemState("command.issued", AT, True),
        5: ItemState("frame.committed", AT, True),
        6: ItemState("frame.dispatched", AT, False),
    }

    found = backlog_of("default", items, states)

    assert (found.frames_waiting, found.rows_waiting, found.commands_waiting) == (2, 56, 1)
    assert (found.running, found.oldest_running) == (1, AT - timedelta(hours=2))
    assert found.oldest_waiting == AT - timedelta(hours=1)


@pytest.mark.parametrize(
    ("group", "words", "silence_ms"),
    [
        ("noetl.worker.gpu", "pool gpu", FRAME_SILENCE_MS),
        ("noetl.planner", "not planned", SILENCE_MS),
        ("noetl.subscription.orders", "subscription orders", SILENCE_MS),
        ("connect-warehouse", "sink warehouse", FRAME_SILENCE_MS),
        ("billing", "not ours", SILENCE_MS),
    ],
)
def test_the_lag_of_a_group_has_a_meaning(group: str, words: str, silence_ms: int) -> None:
    found = meaning_of(group)

    assert words in found.counts
    assert found.silence_ms == silence_ms
