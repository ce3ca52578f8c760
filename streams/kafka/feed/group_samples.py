"""Metrics of a role's consumer, from what `/health` reports."""

from __future__ import annotations

from collections.abc import Iterator

from streams.kafka.transport.health import Health
from streams.metrics.metric import Sample
from streams.metrics.processes import (
    DEPENDENCIES_AWAY,
    GROUP_BEHIND,
    GROUP_FINISHED,
    GROUP_PARTITIONS,
    GROUP_REBALANCES,
    IS_READY,
)


def group_samples(found: Health, rebalances: int) -> Iterator[Sample]:
    """Yield them; a process that waits for its partitions reports none."""
    group = (found.group,)
    yield Sample(GROUP_BEHIND, found.behind, group)
    yield Sample(GROUP_PARTITIONS, found.partitions, group)
    yield Sample(GROUP_REBALANCES, rebalances, group)
    yield Sample(GROUP_FINISHED, found.finished, group)
    yield Sample(IS_READY, float(found.is_ready))
    yield Sample(DEPENDENCIES_AWAY, len(found.away))
