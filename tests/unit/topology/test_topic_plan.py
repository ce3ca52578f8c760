"""What the broker lacks is planned; what would do harm is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from streams.topology import Topic, Topology
from streams.topology.changes import BrokerTopic, Create, Grow, Reconfigure, plan

KEYED = Topic(
    name="noetl.things",
    partitions=4,
    retention="1h",
    cleanup="delete",
    key="thing id",
    schema=None,
    writer="maker",
    readers=("taker",),
    why="A test.",
)


def found(topic: Topic = KEYED, **changes: Any) -> dict[str, BrokerTopic]:
    there = BrokerTopic(topic.name, topic.partitions, topic.settings, written=True)
    return {topic.name: replace(there, **changes)}


def test_a_topic_as_declared_needs_nothing() -> None:
    assert plan(Topology((KEYED,)), found()).settled


def test_a_missing_topic_is_created() -> None:
    assert plan(Topology((KEYED,)), {}).steps == (Create(KEYED),)


def test_a_setting_that_differs_is_changed_and_the_others_are_not() -> None:
    settings = {**KEYED.settings, "retention.ms": "5", "segment.bytes": "7"}
    (step,) = plan(Topology((KEYED,)), found(settings=settings)).steps
    assert step == Reconfigure(KEYED.name, {"retention.ms": "3600000"}, {"retention.ms": "5"})
    assert str(step) == "configure noetl.things: retention.ms 5 -> 3600000"


def test_a_keyed_topic_that_never_held_a_record_may_grow() -> None:
    there = found(partitions=1, written=False)
    assert plan(Topology((KEYED,)), there).steps == (Grow(KEYED.name, 4, 1),)


def test_a_topic_without_key_may_grow_at_any_time() -> None:
    plain = replace(KEYED, key=None)
    there = found(plain, partitions=1)
    assert plan(Topology((plain,)), there).steps == (Grow(plain.name, 4, 1),)


def test_a_keyed_topic_that_held_records_may_not_grow_and_is_told_why() -> None:
    outcome = plan(Topology((KEYED,)), found(partitions=1))
    assert not outcome.steps
    assert not outcome.settled
    (reason,) = outcome.refused
    assert "noetl.things: has 1 partitions, 4 are declared" in reason
    assert "thing id" in reason


def test_partitions_are_never_taken_away() -> None:
    outcome = plan(Topology((KEYED,)), found(partitions=9))
    assert not outcome.steps
    assert "cannot remove any" in outcome.refused[0]


def test_an_undeclared_topic_of_ours_is_named_and_a_strangers_is_not() -> None:
    there = {
        **found(),
        "noetl.old": BrokerTopic("noetl.old", 1),
        "theirs": BrokerTopic("theirs", 1),
    }
    outcome = plan(Topology((KEYED,)), there)
    assert outcome.extra == ("noetl.old",)
    assert outcome.settled, "it is left alone"
