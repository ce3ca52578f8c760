"""Errors of brokers and of consumers."""

from __future__ import annotations

from streams.errors import Inconsistent, Unavailable


class BrokerUnavailable(Unavailable):
    """The broker does not respond in time."""


class FeedUnavailable(Unavailable):
    """The broker cannot be read, or lost the group's position."""


class Stalled(Inconsistent):
    """Records are pending and none is finished: the process must restart."""
