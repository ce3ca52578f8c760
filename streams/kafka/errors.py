"""Errors of brokers and of consumers."""

from __future__ import annotations

from streams.errors import Inconsistent, Unavailable


class BrokerUnavailable(Unavailable):
    """The broker does not respond in time."""

    dependency = "Kafka"


class FeedUnavailable(Unavailable):
    """The broker cannot be read, or lost the group's position."""

    dependency = "Kafka"


class Stalled(Inconsistent):
    """Records are pending and none is finished: the process must restart."""
