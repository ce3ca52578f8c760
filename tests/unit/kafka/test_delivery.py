"""Records that wait for an agent: in order, up to a limit, none after a rebalance."""

from __future__ import annotations

from streams.kafka.feed.port import Record, TopicPartition
from streams.kafka.transport.delivery import TopicDelivery

FIRST, SECOND = TopicPartition("things", 0), TopicPartition("things", 1)


def records(partition: TopicPartition, *offsets: int) -> list[Record]:
    return [Record(partition, offset, None, None, (), 0) for offset in offsets]


def delivery_of(*added: tuple[TopicPartition, list[Record]]) -> TopicDelivery:
    made = TopicDelivery()
    for partition, found in added:
        made.add(partition, found)
    return made


def offsets(batch: dict[TopicPartition, list[Record]]) -> dict[TopicPartition, list[int]]:
    return {one: [record.offset for record in found] for one, found in batch.items()}


def test_fetches_added_before_the_first_take_are_one_batch_in_order() -> None:
    delivery = delivery_of(
        (FIRST, records(FIRST, 0, 1)),
        (SECOND, records(SECOND, 7)),
        (FIRST, records(FIRST, 2, 5)),
    )
    assert offsets(delivery.take(10)) == {FIRST: [0, 1, 2, 5], SECOND: [7]}
    assert delivery.take(10) == {}


def test_a_limit_splits_the_records_over_partitions_and_preserves_their_order() -> None:
    delivery = delivery_of(
        (FIRST, records(FIRST, 0, 1, 2, 3, 4)), (SECOND, records(SECOND, 0, 1, 2))
    )
    batches = [offsets(delivery.take(3)) for _ in range(4)]
    assert batches == [
        {FIRST: [0, 1, 2]},
        {FIRST: [3, 4], SECOND: [0]},
        {SECOND: [1, 2]},
        {},
    ]


def test_a_limit_that_ends_with_a_partition_leaves_no_empty_list_of_it() -> None:
    delivery = delivery_of((FIRST, records(FIRST, 0, 1)), (SECOND, records(SECOND, 0)))
    assert offsets(delivery.take(2)) == {FIRST: [0, 1]}
    assert offsets(delivery.take(2)) == {SECOND: [0]}


def test_records_may_be_added_until_the_first_are_taken() -> None:
    delivery = delivery_of((FIRST, records(FIRST, 0, 1)))
    assert delivery.is_open
    delivery.take(1)
    assert not delivery.is_open


def test_a_delivery_whose_agent_took_nothing_yet_is_closed_by_an_empty_take() -> None:
    delivery = TopicDelivery()
    assert delivery.take(10) == {}
    assert not delivery.is_open


def test_records_of_a_partition_that_was_moved_are_discarded_and_the_others_remain() -> None:
    delivery = delivery_of((FIRST, records(FIRST, 0, 1)), (SECOND, records(SECOND, 7)))
    delivery.discard(FIRST)
    assert delivery.is_open, "the partition is read again from its new position"
    delivery.add(FIRST, records(FIRST, 4))
    assert offsets(delivery.take(10)) == {SECOND: [7], FIRST: [4]}


def test_discarding_a_partition_without_records_changes_nothing() -> None:
    delivery = delivery_of((FIRST, records(FIRST, 0)))
    delivery.discard(SECOND)
    assert offsets(delivery.take(10)) == {FIRST: [0]}


def test_a_dropped_delivery_is_closed_and_has_no_records() -> None:
    delivery = delivery_of((FIRST, records(FIRST, 0, 1)), (SECOND, records(SECOND, 7)))
    delivery.take(1)
    delivery.drop()
    assert not delivery.is_open
    assert delivery.take(10) == {}


def test_a_batch_that_was_taken_is_not_changed_by_a_drop() -> None:
    delivery = delivery_of((FIRST, records(FIRST, 0, 1, 2)))
    batch = delivery.take(2)
    delivery.drop()
    assert offsets(batch) == {FIRST: [0, 1]}
