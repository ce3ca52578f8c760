"""Errors of brokers and of consumers."""

from __future__ import annotations

from pathlib import Path

from streams.errors import Inconsistent, Unavailable


class BrokerUnavailable(Unavailable):
    """The broker does not respond in time."""

    dependency = "Kafka"


class FeedUnavailable(Unavailable):
    """The broker cannot be read, or lost the group's position."""

    dependency = "Kafka"


class Stalled(Inconsistent):
    """Records are pending and none is finished: the process must restart."""


class DriverFailed(Inconsistent):
    """A task of the Kafka driver ended, so no more records would arrive."""

    def __init__(self, task: str, reason: BaseException | None) -> None:
        super().__init__(f"the Kafka driver's task {task} ended: {reason!r}; exiting for a restart")


class ChangelogMissing(Inconsistent):
    """A changelog topic was deleted: a restart creates it, and reads its tables from the log."""

    def __init__(self, topics: list[str]) -> None:
        super().__init__(f"one of the changelogs {', '.join(topics)} is missing; exiting")


class TablesInUse(Inconsistent):
    """Another process has the files of a table open."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path}: another process uses it; give each process its own NOETL_SHARD_ID"
        )


class ChangelogFailed(Inconsistent):
    """The changelogs of a partition cannot be written, though the broker responds."""

    def __init__(self, group: str, partition: int, error: Exception) -> None:
        super().__init__(
            f"group {group}: the changelogs of partition {partition} cannot be written: {error!r}; "
            "exiting for a restart"
        )
