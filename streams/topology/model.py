"""Declared topics and the topology they form."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field
from pydantic.dataclasses import dataclass

from streams.kafka.names import EVENTS_PREFIX

Profile = Literal["cluster", "local"]
"""Cluster of several brokers, or the single broker of a laptop or a test."""

_UNITS_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_RETENTION = re.compile(r"([1-9][0-9]*)([smhd])")


def _retention(text: str) -> str:
    if text != "forever" and not _RETENTION.fullmatch(text):
        raise ValueError("must be 'forever' or a number and a unit, such as 7d, 12h, 30m or 90s")
    return text


_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$", max_length=249)]
_Party = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]
_Count = Annotated[int, Field(ge=1, strict=True)]
_Sentence = Annotated[str, Field(min_length=1)]
_STRICT = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True, config=_STRICT)
class Local:
    """Overrides of a topic on a single broker."""

    partitions: _Count | None = None


@dataclass(frozen=True, slots=True, config=_STRICT, kw_only=True)
class Topic:
    """One topic as declared; `key` and `schema` are None if not ours."""

    name: _Name
    partitions: _Count
    replication: _Count = 3
    retention: Annotated[str, AfterValidator(_retention)]
    cleanup: Literal["delete", "compact"]
    key: str | None
    schema: str | None
    writer: _Party
    readers: tuple[_Party, ...]
    why: _Sentence
    config: Mapping[str, str] = field(default_factory=dict)
    local: Local = field(default_factory=Local)

    def __post_init__(self) -> None:
        if self.cleanup == "compact" and self.retention != "forever":
            raise ValueError("a compacted topic keeps the newest of each key: retention is forever")

    @property
    def retention_ms(self) -> int:
        """Retention in Kafka's milliseconds: -1 means forever."""
        found = _RETENTION.fullmatch(self.retention)
        return int(found[1]) * _UNITS_MS[found[2]] if found else -1

    @property
    def settings(self) -> dict[str, str]:
        """The topic's configuration in Kafka's own keys."""
        retention = {"retention.ms": str(self.retention_ms)} if self.cleanup == "delete" else {}
        return {
            "cleanup.policy": self.cleanup,
            **retention,
            # Survives the loss of one replica, and rejects a write that two would not have.
            "min.insync.replicas": str(min(2, self.replication)),
            **self.config,
        }

    def at(self, profile: Profile) -> Topic:
        """Return the topic in this profile; a single broker has one replica."""
        if profile == "cluster":
            return self
        return replace(self, partitions=self.local.partitions or self.partitions, replication=1)


@dataclass(frozen=True, slots=True)
class Topology:
    """Every declared topic, in order of name."""

    topics: tuple[Topic, ...]

    @property
    def by_name(self) -> dict[str, Topic]:
        """The topics by their names."""
        return {topic.name: topic for topic in self.topics}

    @property
    def roots(self) -> tuple[str, ...]:
        """The types of root that have a topic for their events."""
        return tuple(
            topic.name.removeprefix(EVENTS_PREFIX)
            for topic in self.topics
            if topic.name.startswith(EVENTS_PREFIX)
        )

    def at(self, profile: Profile) -> Topology:
        """Return every topic in this profile."""
        return Topology(tuple(topic.at(profile) for topic in self.topics))
