"""Changes from a broker's topics to the declared ones. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from streams.kafka.names import NAMESPACE
from streams.topology import Topic, Topology


@dataclass(frozen=True, slots=True)
class BrokerTopic:
    """A topic on the broker; `written` once it has ever held a record."""

    name: str
    partitions: int
    settings: Mapping[str, str] = field(default_factory=dict)
    written: bool = False


@dataclass(frozen=True, slots=True)
class Create:
    """The topic does not exist yet."""

    topic: Topic

    def __str__(self) -> str:
        one = self.topic
        return f"create {one.name}: {one.partitions} partitions, {one.cleanup}, {one.retention}"


@dataclass(frozen=True, slots=True)
class Reconfigure:
    """Some settings differ; `changes` holds the declared values, `was` the broker's."""

    name: str
    changes: Mapping[str, str]
    was: Mapping[str, str]

    def __str__(self) -> str:
        changes = ", ".join(
            f"{key} {self.was.get(key, '(unset)')} -> {value}"
            for key, value in self.changes.items()
        )
        return f"configure {self.name}: {changes}"


@dataclass(frozen=True, slots=True)
class Grow:
    """The topic has fewer partitions than declared, and may safely get more."""

    name: str
    partitions: int
    was: int

    def __str__(self) -> str:
        return f"grow {self.name}: {self.was} -> {self.partitions} partitions"


TopologyChange = Create | Reconfigure | Grow


@dataclass(frozen=True, slots=True)
class TopologyPlan:
    """The steps to take, obstacles, and undeclared topics."""

    steps: tuple[TopologyChange, ...]
    refused: tuple[str, ...]
    extra: tuple[str, ...]

    @property
    def settled(self) -> bool:
        """Whether the broker matches the declaration."""
        return not self.steps and not self.refused


def plan(topology: Topology, found: Mapping[str, BrokerTopic]) -> TopologyPlan:
    """Compare the declared topics with the broker's.

    An undeclared topic in our namespace is reported but not deleted: its records may be the
    only copy.
    """
    steps: list[TopologyChange] = []
    refused: list[str] = []
    for topic in topology.topics:
        here = found.get(topic.name)
        if here is None:
            steps.append(Create(topic))
            continue
        if changes := _changes(topic, here):
            was = {key: here.settings[key] for key in changes if key in here.settings}
            steps.append(Reconfigure(topic.name, changes, was))
        if problem := _obstacle(topic, here):
            refused.append(problem)
        elif here.partitions < topic.partitions:
            steps.append(Grow(topic.name, topic.partitions, here.partitions))
    declared = topology.by_name
    extra = sorted(n for n in found if n.startswith(NAMESPACE) and n not in declared)
    return TopologyPlan(tuple(steps), tuple(refused), tuple(extra))


def _changes(topic: Topic, here: BrokerTopic) -> dict[str, str]:
    return {key: value for key, value in topic.settings.items() if here.settings.get(key) != value}


def _obstacle(topic: Topic, here: BrokerTopic) -> str | None:
    if here.partitions > topic.partitions:
        return (
            f"{topic.name}: has {here.partitions} partitions, {topic.partitions} are declared, "
            "and Kafka cannot remove any; declare the existing count, or delete and refill it"
        )
    if here.partitions < topic.partitions and topic.key and here.written:
        return (
            f"{topic.name}: has {here.partitions} partitions, {topic.partitions} are declared, "
            f"but it has held records and its key ({topic.key}) selects the partition: with more "
            "of them keys would move and lose their order; keep the count, or delete and refill it"
        )
    return None
