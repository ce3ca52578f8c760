"""Administration of a broker's topics: read, create, change, delete."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # it lacks an __all__
    AlterConfigOpType,
    ClusterMetadata,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from streams.errors import Refused
from streams.kafka.clients import admin, reason
from streams.kafka.errors import BrokerUnavailable
from streams.topology import Profile, Topology
from streams.topology.changes import (
    BrokerTopic,
    Create,
    Grow,
    Reconfigure,
    TopologyChange,
    TopologyPlan,
    plan,
)

# Another process made the same change first, or this broker does not know it yet.
_SETTLES_ITSELF = {
    KafkaError.TOPIC_ALREADY_EXISTS,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
}
# Not retriable.
_FINAL = {
    KafkaError.INVALID_CONFIG,
    KafkaError.INVALID_REPLICATION_FACTOR,
    KafkaError.INVALID_PARTITIONS,
    KafkaError.POLICY_VIOLATION,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
}
_PAUSE_S = 0.05
_T = TypeVar("_T")
_A = TypeVar("_A")


class TopicsRefused(Refused):
    """The declared topics cannot be applied safely, or the broker rejects them."""


class TopicAdmin:
    """The topics of one Kafka cluster; its calls block."""

    def __init__(self, bootstrap: str, *, timeout_s: float = 30.0) -> None:
        self.bootstrap, self._timeout_s = bootstrap, timeout_s
        self._admin = admin(bootstrap)

    def profile(self) -> Profile:
        """Return the profile of the cluster: a single broker cannot hold several replicas."""
        return "local" if len(self._metadata().brokers) == 1 else "cluster"

    def plan(self, topology: Topology) -> TopologyPlan:
        """Compare `topology` with the broker, changing nothing."""
        return plan(topology, self._found(topology))

    def apply(self, topology: Topology) -> tuple[TopologyChange, ...]:
        """Apply `topology` to the broker; return the steps taken.

        Several processes may apply at once: each compares again until its plan is empty, so a
        step that another took first drops out.

        Raises:
            TopicsRefused: a change would break a key's order, or the broker forbids it.
            BrokerUnavailable: no answer, or a partition got no leader in time.
        """
        deadline = time.monotonic() + self._timeout_s
        taken: list[TopologyChange] = []
        while True:
            now = self.plan(topology)
            if now.refused:
                raise TopicsRefused("; ".join(now.refused))
            if not now.steps and (waiting := self._leaderless(topology)) is None:
                return tuple(taken)
            taken += self._take(now.steps)
            if time.monotonic() > deadline:
                what = str(now.steps[0]) if now.steps else f"{waiting} has no leader"
                raise BrokerUnavailable(
                    f"{self.bootstrap}: not done after {self._timeout_s:.0f} s: {what}; "
                    "check that the brokers are up, then run it again"
                )
            time.sleep(_PAUSE_S)

    def delete(self, topics: Iterable[str], *, timeout_s: float = 60.0) -> None:
        """Delete topics and return when no broker lists them.

        Raises:
            BrokerUnavailable: they still exist after `timeout_s`.
        """
        names = list(topics)
        deadline = time.monotonic() + timeout_s
        try:
            for topic, future in self._admin.delete_topics(names, operation_timeout=30).items():
                self._deleted(topic, future, timeout_s)
            while remaining := set(names) & set(self._admin.list_topics(timeout=timeout_s).topics):
                if time.monotonic() > deadline:
                    raise BrokerUnavailable(
                        f"{self.bootstrap}: {min(remaining)} still exists {timeout_s:.0f} s after "
                        "its deletion; check that every broker is up, then run it again"
                    )
                time.sleep(_PAUSE_S)
        except KafkaException as error:
            raise BrokerUnavailable(f"{self.bootstrap}: {reason(error)}; run it again") from error

    def _deleted(self, topic: str, future: Future[None], timeout_s: float) -> None:
        try:
            future.result(timeout=timeout_s)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise BrokerUnavailable(
                    f"{self.bootstrap}: cannot delete {topic}: {reason(error)}"
                ) from error

    def _metadata(self) -> ClusterMetadata:
        try:
            return self._admin.list_topics(timeout=self._timeout_s)
        except KafkaException as error:
            raise BrokerUnavailable(
                f"{self.bootstrap}: no answer from Kafka ({reason(error)}); "
                "check that it is up and that event_store.connection.url is its address"
            ) from error

    def _found(self, topology: Topology) -> dict[str, BrokerTopic]:
        there = {name: len(meta.partitions) for name, meta in self._metadata().topics.items()}
        ours = topology.by_name
        settings = self._settings([name for name in there if name in ours])
        return {
            name: BrokerTopic(
                name,
                partitions,
                settings.get(name, {}),
                written=name in ours
                and partitions < ours[name].partitions
                and self._written(name, partitions),
            )
            for name, partitions in there.items()
            if name not in ours or name in settings
        }

    def _settings(self, names: Iterable[str]) -> dict[str, dict[str, str]]:
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
        if not resources:
            return {}
        answers = self._admin.describe_configs(resources, request_timeout=self._timeout_s)
        found: dict[str, dict[str, str]] = {}
        for resource, future in answers.items():
            entries = self._outcome(future, f"reading the settings of {resource.name}", None)
            if entries is not None:
                found[resource.name] = {key: str(one.value) for key, one in entries.items()}
        return found

    def _written(self, name: str, partitions: int) -> bool:
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        ends = {TopicPartition(name, number): latest for number in range(partitions)}
        answers = self._admin.list_offsets(ends, request_timeout=self._timeout_s)
        found = [self._outcome(one, f"reading the end of {name}", None) for one in answers.values()]
        # Unknown counts as written: the safe answer, and the next comparison asks again.
        return any(end is None or end.offset > 0 for end in found)

    def _leaderless(self, topology: Topology) -> str | None:
        there = self._metadata().topics
        for topic in topology.topics:
            meta = there.get(topic.name)
            if meta is None or len(meta.partitions) < topic.partitions:
                return topic.name
            if any(part.leader < 0 for part in meta.partitions.values()):
                return topic.name
        return None

    def _take(self, steps: Iterable[TopologyChange]) -> list[TopologyChange]:
        """Take the steps concurrently; return those that no other process took first."""
        asked = [(step, self._ask(step)) for step in steps]
        return [one for one, future in asked if self._outcome(future, str(one), False) is not False]

    def _ask(self, step: TopologyChange) -> Future[None]:
        wait_s = self._timeout_s
        futures: Mapping[str, Future[None]] | Mapping[ConfigResource, Future[None]]
        match step:
            case Create(topic):
                new = NewTopic(
                    topic.name,
                    num_partitions=topic.partitions,
                    replication_factor=topic.replication,
                    config=topic.settings,
                )
                futures = self._admin.create_topics([new], request_timeout=wait_s)
            case Grow(name, partitions):
                futures = self._admin.create_partitions(
                    [NewPartitions(name, partitions)], request_timeout=wait_s
                )
            case Reconfigure(name, changes):
                entries = [
                    ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
                    for key, value in changes.items()
                ]
                resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)
                futures = self._admin.incremental_alter_configs([resource], request_timeout=wait_s)
        (future,) = futures.values()
        return future

    def _outcome(self, future: Future[_T], what: str, absent: _A) -> _T | _A:
        """Return the future's result, or `absent` if a retry will settle it."""
        try:
            return future.result(timeout=self._timeout_s + 1)
        except KafkaException as error:
            code = error.args[0].code()
            if code in _SETTLES_ITSELF:
                return absent
            if code == KafkaError.INVALID_PARTITIONS and what.startswith("grow "):
                return absent
            if code in _FINAL:
                raise TopicsRefused(f"{what}: Kafka refuses: {reason(error)}") from error
            raise BrokerUnavailable(
                f"{self.bootstrap}: {what}: {reason(error)}; run it again"
            ) from error
