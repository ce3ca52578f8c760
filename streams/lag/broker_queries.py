"""Queries of groups, their offsets and the ends of partitions; all of them block."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from streams.kafka.clients import admin, reason
from streams.kafka.errors import BrokerUnavailable
from streams.lag.first_records import Partition
from streams.lag.model import Owner

TIMEOUT_S = 15.0
_EARLIEST: Any = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_LATEST: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]


@dataclass(frozen=True, slots=True)
class GroupState:
    """A group as its coordinator describes it."""

    state: str
    owners: tuple[Owner, ...]
    assigned: Mapping[Partition, Owner]


@dataclass(frozen=True, slots=True)
class OffsetLimits:
    """First offset, end and last stable offset of a partition."""

    start: int
    end: int
    stable_end: int


class BrokerQueries:
    """Requests to the brokers through one client."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap, self._timeout_s = bootstrap, TIMEOUT_S
        self._client: AdminClient = admin(bootstrap)

    def groups(self) -> tuple[str, ...]:
        """Return the ids of all consumer groups of the cluster."""
        found = self._result(self._client.list_consumer_groups(request_timeout=self._timeout_s))
        if found.errors:  # a broker that does not respond would be groups that do not exist
            first = found.errors[0]
            raise self._unavailable(
                first if isinstance(first, KafkaException) else KafkaException(first)
            )
        return tuple(sorted(one.group_id for one in found.valid))

    def describe(self, groups: Collection[str]) -> dict[str, GroupState]:
        """Return the states and members of groups."""
        if not groups:
            return {}
        futures = self._client.describe_consumer_groups(
            list(groups), request_timeout=self._timeout_s
        )
        return {group: _state(self._result(future)) for group, future in futures.items()}

    def committed(self, groups: Iterable[str]) -> dict[str, dict[Partition, int]]:
        """Return the committed offsets of groups."""
        asked = {
            group: self._client.list_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(group)], request_timeout=self._timeout_s
            )[group]
            for group in groups
        }
        return {
            group: {
                (one.topic, one.partition): one.offset
                for one in self._result(future).topic_partitions
                if one.offset >= 0
            }
            for group, future in asked.items()
        }

    def limits(self, partitions: Collection[Partition]) -> dict[Partition, OffsetLimits]:
        """Return the limits of partitions; those of deleted topics are left out."""
        starts = self._offsets(partitions, _EARLIEST)
        stable = self._offsets(partitions, _LATEST, is_committed=True)
        ends = self._offsets(partitions, _LATEST)
        both = starts.keys() & stable.keys() & ends.keys()
        return {one: OffsetLimits(starts[one], ends[one], stable[one]) for one in both}

    def ends_at(self, times_ms: Mapping[Partition, int]) -> dict[Partition, int]:
        """Return the offset of the first record at or after a time; -1 if there is none."""
        specs = {one: OffsetSpec.for_timestamp(at) for one, at in times_ms.items()}
        return self._listed(specs)

    def partitions(self, prefix: str) -> list[Partition]:
        """Return the partitions of all topics whose names begin with `prefix`."""
        try:
            topics = self._client.list_topics(timeout=self._timeout_s).topics
        except KafkaException as error:
            raise self._unavailable(error) from error
        return [
            (name, number)
            for name, topic in topics.items()
            if name.startswith(prefix)
            for number in topic.partitions
        ]

    def _offsets(
        self, partitions: Iterable[Partition], spec: OffsetSpec, *, is_committed: bool = False
    ) -> dict[Partition, int]:
        return self._listed(dict.fromkeys(partitions, spec), is_committed=is_committed)

    def _listed(
        self, specs: Mapping[Partition, OffsetSpec], *, is_committed: bool = False
    ) -> dict[Partition, int]:
        if not specs:
            return {}
        level = IsolationLevel.READ_COMMITTED if is_committed else IsolationLevel.READ_UNCOMMITTED
        futures = self._client.list_offsets(
            {TopicPartition(*one): spec for one, spec in specs.items()},
            isolation_level=level,
            request_timeout=self._timeout_s,
        )
        found = {}
        for one, future in futures.items():
            try:
                found[one.topic, one.partition] = int(future.result(self._timeout_s + 1).offset)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise self._unavailable(error) from error
            except TimeoutError as error:
                raise self._silent() from error
        return found

    def _result(self, future: Any) -> Any:
        try:
            return future.result(self._timeout_s + 1)
        except KafkaException as error:
            raise self._unavailable(error) from error
        except TimeoutError as error:
            raise self._silent() from error

    def _unavailable(self, error: KafkaException) -> BrokerUnavailable:
        return BrokerUnavailable(
            f"{self._bootstrap}: {reason(error)}; check that Kafka is up (`streams status`), "
            "and that this client may describe groups and topics"
        )

    def _silent(self) -> BrokerUnavailable:
        return BrokerUnavailable(f"{self._bootstrap}: no response from Kafka; is it up?")


def _state(described: Any) -> GroupState:
    owners, assigned = [], {}
    for member in described.members:
        owner = Owner(member.member_id, member.client_id, member.group_instance_id, member.host)
        owners.append(owner)
        for one in member.assignment.topic_partitions if member.assignment else ():
            assigned[one.topic, one.partition] = owner
    return GroupState(described.state.name.lower(), tuple(owners), assigned)
