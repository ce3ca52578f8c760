"""Subscriptions over ports in memory: each record once, whatever is steered meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from streams.catalog.subscription_state import ReplayRange
from streams.events.model import NewEvent
from streams.trigger.subscriptions import supervisor as supervision
from tests.support.subscription.memory import SCOPE, Shop
from tests.support.waiting import until


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.setattr(supervision, "POLL_S", 0.02)
    return Shop()


def order(number: int) -> bytes:
    return orjson.dumps({"n": number})


async def test_each_record_starts_one_execution_of_the_subscriptions_owner(shop: Shop) -> None:
    await shop.register({"dispatch": {"playbook": "shop/order", "execution_pool": "big"}})
    shop.write(*(order(n) for n in range(5)))
    async with shop.running():
        await shop.until_started(5)
        assert shop.lag == 0
    first = (await shop.started())[0]
    assert [one["n"] for one in await shop.workloads()] == [0, 1, 2, 3, 4]
    assert (first.tenant_id, first.organization_id) == ("acme", "care")
    assert first.meta["subscription"] == "shop/orders"
    assert first.meta["pool"] == "big"
    assert first.meta["path"] == "shop/order"


async def test_a_restarted_process_goes_on_where_the_ledger_ends(shop: Shop) -> None:
    await shop.register()
    shop.write(order(1), order(2))
    async with shop.running():
        await shop.until_started(2)
    shop.topics.committed.clear()  # as after the group's offsets expired
    shop.write(order(3))
    async with shop.running():
        await shop.until_started(3)
        assert shop.lag == 0


async def test_a_subscription_registered_later_reads_from_the_first_record(shop: Shop) -> None:
    shop.write(order(1))
    async with shop.running() as supervisor:
        await asyncio.sleep(0.05)
        assert not supervisor.running
        await shop.register()
        await shop.until_started(1)


async def test_two_subscriptions_of_one_topic_each_start_their_own(shop: Shop) -> None:
    await shop.register()
    await shop.register({"dispatch": {"playbook": "shop/return"}}, "shop/returns")
    shop.write(order(1), order(2))
    async with shop.running():
        await shop.until_started(4)
    paths = sorted(str(event.meta["path"]) for event in await shop.started())
    assert paths == ["shop/order", "shop/order", "shop/return", "shop/return"]


async def test_a_paused_subscription_starts_nothing_and_goes_on_when_resumed(shop: Shop) -> None:
    await shop.register()
    async with shop.running() as supervisor:
        shop.write(order(1))
        await shop.until_started(1)
        await shop.subscriptions.pause(SCOPE, "shop/orders")
        await until(lambda: not supervisor.running)
        shop.write(order(2), order(3))
        await asyncio.sleep(0.1)
        assert (len(await shop.started()), shop.lag) == (1, 2)
        await shop.subscriptions.resume(SCOPE, "shop/orders")
        await shop.until_started(3)


async def test_a_new_version_takes_over_without_losing_or_doubling(shop: Shop) -> None:
    await shop.register()
    async with shop.running():
        shop.write(order(1))
        await shop.until_started(1)
        await shop.register({"dispatch": {"playbook": "shop/return"}})
        await until(lambda: shop.opened == 2)
        shop.write(order(2))
        await shop.until_started(2)
    assert [event.meta["path"] for event in await shop.started()] == ["shop/order", "shop/return"]


async def test_records_that_cannot_be_used_are_dead_letters_with_their_reasons(shop: Shop) -> None:
    await shop.register()
    shop.write(b"{", order(1), b"", None)
    async with shop.running():
        await shop.until_started(2)
    letters = [(one.record.offset, one.reason[:20], one.kind) for one in shop.dead_letters.letters]
    assert letters == [
        (0, "the body is not JSON", "subscription"),
        (2, "the body is not JSON", "subscription"),
    ]
    rejected = await shop.events("trigger.rejected")
    assert [(one.meta["offset"], one.meta["subscription"]) for one in rejected] == [
        (0, "shop/orders"),
        (2, "shop/orders"),
    ]
    assert (await shop.workloads())[1]["message"]["metadata"]["tombstone"] is True


async def test_a_record_for_an_unknown_playbook_is_a_dead_letter(shop: Shop) -> None:
    await shop.register({"dispatch": {"playbook": "shop/nothing"}})
    shop.write(order(1))
    async with shop.running():
        await until(lambda: len(shop.dead_letters.letters) == 1)
    assert shop.dead_letters.letters[0].reason == "path: no playbook shop/nothing is registered"


KEYED: dict[str, Any] = {
    "dedup": {"enabled": True, "window_secs": 60},
    "headers": {"directives": [{"header": "key", "controls": "idempotency_key"}]},
}


async def test_records_with_one_key_start_one_execution_within_the_window(shop: Shop) -> None:
    await shop.register(KEYED)
    for number, key in enumerate((b"a", b"b", b"a")):
        shop.write(order(number), headers=(("key", key),))
    shop.write(order(3), headers=(("key", None),))
    shop.write(order(4))
    async with shop.running():
        await shop.until_started(4)
    assert [one["n"] for one in await shop.workloads()] == [0, 1, 3, 4]
    assert shop.lag == 0


async def test_a_batch_is_one_execution_and_bad_records_are_left_out(shop: Shop) -> None:
    await shop.register({"dispatch": {"playbook": "shop/order", "per": "batch", "batch_max": 3}})
    shop.write(order(0), order(1), b"{", order(3), order(4))
    async with shop.running():
        await shop.until_started(2)
    batches = [[one["data"]["n"] for one in w["messages"]] for w in await shop.workloads()]
    assert batches == [[0, 1], [3, 4]]
    assert len(shop.dead_letters.letters) == 1
    assert len(shop.ledger.rows) == 5


async def test_a_batch_that_was_partly_entered_before_is_entered_without_doubling(
    shop: Shop,
) -> None:
    one = {"dispatch": {"playbook": "shop/order", "per": "batch", "batch_max": 2}}
    await shop.register(one)
    shop.write(order(0), order(1))
    async with shop.running():
        await shop.until_started(1)
    # A process that lost the partition delivers records again from an older position.
    shop.ledger.next_offset = lambda *_: asyncio.sleep(0, 1)  # type: ignore[method-assign]
    shop.write(order(2))
    async with shop.running():
        await shop.until_started(2)
    batches = [[one["data"]["n"] for one in w["messages"]] for w in await shop.workloads()]
    assert batches == [[0, 1], [2]]


async def test_a_limit_in_flight_holds_records_in_the_topic(shop: Shop) -> None:
    await shop.register({"limits": {"max_in_flight": 2}})
    shop.write(*(order(n) for n in range(4)))
    async with shop.running():
        await shop.until_started(2)
        assert shop.lag == 2
        await end(shop, 0)
        await shop.until_started(3)
        await end(shop, 1)
        await shop.until_started(4)


async def end(shop: Shop, number: int) -> None:
    event = (await shop.started())[number]
    await shop.log.append(
        [
            NewEvent(
                root=event.root,
                tenant_id=event.tenant_id,
                organization_id=event.organization_id,
                type="playbook.completed",
                idempotency_key="end",
                event_time=event.event_time,
                status="COMPLETED",
                result={"status": "success"},
            )
        ]
    )


async def test_a_rate_limit_spreads_starts_over_time(shop: Shop) -> None:
    await shop.register({"limits": {"max_dispatch_per_sec": 20}})
    shop.write(*(order(n) for n in range(10)))
    async with shop.running():
        begun = asyncio.get_running_loop().time()
        await shop.until_started(10)
        took = asyncio.get_running_loop().time() - begun
    assert 0.3 < took < 2


async def test_a_recreated_topic_is_read_from_its_first_record(shop: Shop) -> None:
    await shop.register()
    shop.write(*(order(n) for n in range(3)))
    async with shop.running():
        await shop.until_started(3)
        # More records than the old one had: at the old position there is something to read.
        shop.topic_ids.ids["orders"] = "second"
        shop.topics.logs.clear()
        shop.write(*(order(10 + n) for n in range(6)))
        await shop.until_started(9)
    assert [one["n"] for one in await shop.workloads()] == [0, 1, 2, *range(10, 16)]


async def test_a_missing_topic_is_waited_for(shop: Shop) -> None:
    del shop.topic_ids.ids["orders"]
    await shop.register()
    async with shop.running():
        await asyncio.sleep(0.1)
        shop.topic_ids.ids["orders"] = "first"
        shop.write(order(1))
        await shop.until_started(1)


async def test_a_replay_starts_its_range_once_more_beside_the_live_records(shop: Shop) -> None:
    await shop.register()
    shop.write(*(order(n) for n in range(4)))
    wanted = ReplayRange(
        number=0, topic="orders", topic_id="first", partition=0, from_offset=1, until_offset=3
    )
    async with shop.running():
        await shop.until_started(4)
        await shop.subscriptions.replay(SCOPE, "shop/orders", wanted)
        await shop.until_started(6)
        shop.write(order(4))
        await shop.until_started(7)
    async with shop.running():
        await asyncio.sleep(0.2)
    assert sorted(one["n"] for one in await shop.workloads()) == [0, 1, 1, 2, 2, 3, 4]


async def test_a_replay_of_a_topic_that_was_recreated_starts_nothing(shop: Shop) -> None:
    await shop.register()
    shop.write(order(1))
    wanted = ReplayRange(
        number=0, topic="orders", topic_id="older", partition=0, from_offset=0, until_offset=1
    )
    async with shop.running():
        await shop.until_started(1)
        await shop.subscriptions.replay(SCOPE, "shop/orders", wanted)
        await asyncio.sleep(0.2)
    assert len(await shop.started()) == 1


async def test_a_failure_of_a_subscription_ends_the_process(shop: Shop) -> None:
    class Broken(Exception):
        pass

    async def enter(_: Any) -> Any:
        raise Broken

    shop.ledger.enter = enter  # type: ignore[method-assign]
    await shop.register()
    shop.write(order(1))
    with pytest.raises(Broken):
        async with shop.running():
            await asyncio.sleep(0.3)
